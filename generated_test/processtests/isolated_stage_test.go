//go:build unix

package processtests_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/topogen/topogen/generated_test/isolated"
	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/topo"
)

// play is a running topology.
type play struct {
	testing.TB
	*isolated.Topology
	parcels chan isolated.Parcel
	log     *lockedBuffer
	marks   string
	stop    context.CancelFunc
	ended   chan error
	over    bool
}

type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// begin runs the topology. script has pairs of a key for scriptOf and its command.
func begin(t testing.TB, drain time.Duration, script ...string) *play {
	t.Helper()
	p := &play{TB: t, parcels: make(chan isolated.Parcel, 10000), log: new(lockedBuffer), marks: filepath.Join(t.TempDir(), "marks"), ended: make(chan error, 1)}
	t.Setenv("ISOLATED_MARKS", p.marks)
	for pair := range slices.Chunk(script, 2) {
		t.Setenv("ISOLATED_"+strings.ToUpper(pair[0]), pair[1])
	}
	top, err := isolated.New(isolated.Processors{
		Collector: func(topo.Instance) (*isolated.Collector, error) { return &isolated.Collector{Parcels: p.parcels}, nil },
	}, pool.DrainTimeout(drain), pool.Logger(slog.New(slog.NewTextHandler(p.log, nil))))
	if err != nil {
		t.Fatal(err)
	}
	p.Topology = top
	ctx, stop := context.WithCancel(t.Context())
	p.stop = stop
	go func() { p.ended <- top.Run(ctx) }()
	t.Cleanup(func() {
		if !p.over {
			p.end()
		}
	})
	p.pid(top.Api().AskOrderToSkipping) // waits until it runs
	return p
}

// end stops the topology, waits for it, and checks that no process is left.
func (p *play) end() error {
	p.Helper()
	p.stop()
	return p.wait()
}

func (p *play) wait() error {
	p.Helper()
	p.over = true
	select {
	case err := <-p.ended:
		p.nobodyLeft()
		return err
	case <-time.After(time.Minute):
		p.Fatal("Run does not return")
		return nil
	}
}

func (p *play) nobodyLeft() {
	p.Helper()
	if left := children(p.TB); len(left) > 0 {
		p.Errorf("processes %v are still there", left)
	}
}

// children lists the children of this process, if the system can list them.
func children(t testing.TB) (pids []int) {
	t.Helper()
	files, _ := filepath.Glob("/proc/self/task/*/children")
	for _, file := range files {
		text, _ := os.ReadFile(file)
		for _, word := range strings.Fields(string(text)) {
			pid, err := strconv.Atoi(word)
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
		}
	}
	return pids
}

type asker func(context.Context, isolated.Order) (isolated.Outcome, error)

// pid asks an instance for its process ID.
func (p *play) pid(ask asker) int {
	p.Helper()
	o, err := ask(p.Context(), isolated.Order{})
	if err != nil {
		p.Fatal(err)
	}
	return o.Process
}

// fails sends an order that must fail.
func (p *play) fails(ask asker, o isolated.Order) {
	p.Helper()
	if outcome, err := ask(p.Context(), o); !errors.Is(err, topo.ErrFailed) || strings.Contains(err.Error(), "goroutine ") {
		p.Errorf("%s: %+v, %v", o.Do, outcome, err)
	}
}

func (p *play) marked() []string {
	text, _ := os.ReadFile(p.marks)
	return strings.Fields(strings.ReplaceAll(strings.ReplaceAll(string(text), " ", "-"), "\n", " "))
}

func (p *play) await(what string, holds func() bool) {
	p.Helper()
	await(p.TB, what, holds)
}

func (p *play) faults(processor isolated.ProcessorIndex) pool.FaultFigures {
	return *p.Snapshot().Processors[processor].Faults
}

func isGone(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat") // a zombie of another parent
	return err == nil && strings.Contains(string(text), ") Z ")
}
