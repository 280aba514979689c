package durable

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/topogen/topogen/bench/measure"
	"github.com/topogen/topogen/runtime/durable/protocol"
)

// data is the parameter of the promises: base64 of 48 bytes of JSON, as an SDK sends it.
var data = "eyJmdW5jIjoiY2hhcmdlIiwiYXJncyI6WzE3LDQyXSwidmVyc2lvbiI6MX0gICAg"

// ctx is the context of operations. They end by the timeout of the client.
var ctx = context.Background()

// never is a deadline that no run reaches.
var never = time.Now().Add(24 * time.Hour).UnixMilli()

// count makes ids that are unique in this process.
var count atomic.Int64

func newID() string { return fmt.Sprintf("bench-%d", count.Add(1)) }

func create(id string) protocol.PromiseCreate {
	return protocol.PromiseCreate{ID: id, TimeoutAt: never, Param: protocol.Value{Data: &data}, Tags: map[string]string{protocol.TagOrigin: id}}
}

func settle(id string) protocol.PromiseSettle {
	return protocol.PromiseSettle{ID: id, State: protocol.Resolved, Value: protocol.Value{Data: &data}}
}

// loop lets clients repeat a step until more returns false, and returns how often all of
// them have done it.
func loop(clients int, more func() bool, step func(client int) error) (n int, err error) {
	var all sync.WaitGroup
	var total atomic.Int64
	failed := make(chan error, clients)
	for c := range clients {
		all.Go(func() {
			for more() {
				if err := step(c); err != nil {
					failed <- err
					return
				}
				total.Add(1)
			}
		})
	}
	all.Wait()
	select {
	case err = <-failed:
	default:
	}
	return int(total.Load()), err
}

// forTime is true for a duration.
func forTime(d time.Duration) func() bool {
	end := time.Now().Add(d)
	return func() bool { return time.Now().Before(end) }
}

// forTimes is true n times.
func forTimes(n int) func() bool {
	var taken atomic.Int64
	return func() bool { return taken.Add(1) <= int64(n) }
}

// CreateSettle lets clients create and settle promises, and returns the number of
// operations.
func (s *System) CreateSettle(clients int, more func() bool) (operations int, err error) {
	n, err := loop(clients, more, func(int) error {
		id := newID()
		if _, err := do(ctx, s, create(id)); err != nil {
			return err
		}
		_, err := do(ctx, s, settle(id))
		return err
	})
	return 2 * n, err
}

// A Run is the result of one run.
type Run struct {
	Rate   float64 // operations or cycles per second
	Syncs  float64 // of the disk, per second, around the run
	PerOp  float64 // nanoseconds of processor time for each operation
	Commit float64 // operations in a commit of the engine
}

// Measure measures a run of a function that returns the number of its operations.
func (s *System) Measure(dir string, d time.Duration, run func(more func() bool) (int, error)) (r Run, err error) {
	before, err := measure.SyncRate(dir, d/4)
	if err != nil {
		return r, err
	}
	stats, cpu, began := s.engine.Stats(), measure.CPU(), time.Now()
	n, err := run(forTime(d))
	if err != nil {
		return r, err
	}
	took := time.Since(began)
	r.PerOp = float64(measure.CPU()-cpu) / float64(n)
	after, err := measure.SyncRate(dir, d/4)
	if err != nil {
		return r, err
	}
	now := s.engine.Stats()
	r.Commit = float64(now.Operations-stats.Operations) / float64(max(1, now.Commits.Count-stats.Commits.Count))
	r.Rate, r.Syncs = float64(n)/took.Seconds(), (before+after)/2
	return r, nil
}
