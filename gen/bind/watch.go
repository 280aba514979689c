package bind

import (
	"context"
	"fmt"
	"go/ast"
	"runtime/metrics"
	"time"

	"github.com/topogen/topogen/spec/finding"
)

// limits bound a type check. What a package writes out is measured beforehand,
// but inference alone can double a type with each line, and a type checker cannot
// be stopped: it can only be left behind.
type limits struct {
	time   time.Duration // of work: where others keep the machine busy more may pass
	memory uint64        // bytes
}

const (
	checkTimeMin   = 3 * time.Second // a large package takes a tenth of that
	checkMemoryMin = 512 << 20       // bytes

	// A topology at its limits gives a hundred megabytes of Go, which takes 0.1 µs
	// and 20 bytes of memory for each byte.
	checkTimePerByte   = time.Microsecond
	checkMemoryPerByte = 64

	watchEvery = 50 * time.Millisecond // at 1 GB/s some 50 MB come on top
)

// limitsFor gives what checking so many bytes of Go may take.
func limitsFor(bytes int) limits {
	return limits{
		time:   (checkTimeMin + time.Duration(bytes)*checkTimePerByte).Round(time.Second),
		memory: checkMemoryMin + uint64(bytes)*checkMemoryPerByte,
	}
}

// overrun says that a check did not end within its limits.
type overrun string

func (e overrun) Error() string { return string(e) }

// watched returns what check does, or an overrun, or the context's error. After an
// error check may still be busy: nothing that it writes to may be used again.
func watched[T any](ctx context.Context, most limits, check func() T) (result T, err error) {
	before := heapBytes()
	done := make(chan T, 1)
	go func() { done <- check() }()
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	begun, worked := time.Now(), cpuTime()
	for {
		select {
		case result = <-done:
			return result, nil
		case <-ctx.Done():
			return result, ctx.Err()
		case <-ticker.C:
			switch {
			case time.Since(begun) > most.time && cpuTime()-worked > most.time:
				return result, overrun(fmt.Sprintf("more than %v", most.time))
			case heapBytes() > before+most.memory:
				return result, overrun(fmt.Sprintf("more than %d MB of memory", most.memory>>20))
			}
		}
	}
}

func heapBytes() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// limits are those of checking the package together with generated files.
func (r *Result) limits(generated []*ast.File) limits {
	bytes := len(r.root.skeleton.text)
	for _, list := range [][]*ast.File{r.root.source.files, generated} {
		for _, file := range list {
			bytes += int(file.FileEnd - file.FileStart)
		}
	}
	return limitsFor(bytes)
}

// giveUp reports a check that was left behind. Nobody may use the loader then.
func (r *Result) giveUp(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	r.leave(err)
	r.reporter.at(finding.PackageNotLoaded, r.reporter.topology.Name, "", "%v", r.loader.failure)
	r.open = false
	return nil
}

func (r *Result) leave(err error) {
	r.loader.abandon(fmt.Errorf("the types of package %s take %w to check: look for calls of generic functions that double a type again and again", r.root.path, err))
}
