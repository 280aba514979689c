package pairs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/runtime/cluster"
	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/topo"
)

// Case is a generated topology.
type Case struct {
	Name    string
	Index   int
	Seed    uint64            // seed of the covering array
	Options map[string]string // values of the factors in package pairtests
	New     func(...pool.Option) (Topology, Outside, error)
	// NewNode makes the topology of a node. It is nil unless the topology has the section cluster.
	NewNode func(node int, opts ...pool.Option) (Topology, Outside, error)
	// Recovered recovers the state of the state machine from its log, and returns how often each
	// update is in it. It is nil if there is no log.
	Recovered func() (map[int]int, error)
	Member    OpenMember // nil if the state machine is not replicated
}

// Topology has the methods of a generated topology that a run calls.
type Topology interface {
	Run(context.Context) error
	Stepper(uint64) *pool.Stepper
	Snapshot() pool.Snapshot
}

// Outside sends messages from outside of the topology. Its fields are nil if the topology has no
// external processor.
type Outside struct {
	Sends []OutsideSend
	Close func()
	// State returns how often each update is in the state of the state machine in this process. It
	// is nil if there is no state machine.
	State func() (map[int]int, error)
}

// OutsideSend sends a message along an edge with Send or Ask.
type OutsideSend struct {
	Edge string
	Do   func(ctx context.Context, id int) error
	Asks bool // Do calls Ask: if it returns nil, the message was handled
}

// Run describes one run of a case.
type Run struct {
	Failure Failure
	Place   string
	Method  string
	Stop    bool // the topology is stopped at a random event
	Stepped bool // under the Stepper; else on workers
	Seed    uint64
	Fault   NodeFault // on several nodes
}

func (r Run) String() string {
	how, end := "workers", ""
	if r.Stepped {
		how = "Stepper"
	}
	if r.Stop {
		end = ", stopped"
	}
	if r.Fault != NoFault {
		end += ", " + string(r.Fault)
	}
	return fmt.Sprintf("%s%s: %s in %s %s, seed %d", how, end, r.Failure, r.Place, r.Method, r.Seed)
}

const problemsMax = 5 // number of problems that are printed for a run

// patience is the time after which a run on workers is stopped.
const patience = 10 * time.Second

// Check runs a case and compares the ledger with the figures.
func Check(t *testing.T, c Case, r Run) {
	t.Helper()
	ledger := ""
	if c.HasProcesses() {
		ledger = filepath.Join(memdir.New(t), "ledger")
	}
	run := func(t *testing.T) {
		if c.Recovered != nil {
			t.Setenv(raft.VariableDir, memdir.New(t))
		}
		begin(t, Plan{ledger, r.Failure, r.Place, r.Method, r.Failure.IsHang() || c.HasProcesses()})
		released, hangStepper, onEvent = make(chan struct{}), nil, nil
		newNetwork()
		defer leave("n1")
		g := newGroup(c.Member)
		top, outside, err := c.New(pool.Logger(slog.New(slog.DiscardHandler)))
		if err != nil {
			t.Fatal(err)
		}
		after := time.Duration(0)
		if r.Stepped {
			err = step(top, outside, r)
		} else {
			after, err = c.runWorkers(top, outside, r, g)
		}
		close(released)
		g.stop()
		if !r.Stepped && !c.HasProcesses() {
			synctest.Wait() // until a state machine whose update hung has closed its log
		}
		hanging.Lock() // waits until all calls that hang have returned
		events, readErr := read()
		hanging.Unlock()
		if readErr != nil {
			t.Fatal(readErr)
		}
		problems := examine(c, r, events, top.Snapshot(), err)
		if after > c.stopsWithin() {
			problems = append(problems, fmt.Sprintf("Run has returned %v after the end of its context, want at most %v", after, c.stopsWithin()))
		}
		if outside.State != nil {
			problems = append(problems, c.compareState(r, events, outside.State, err == nil)...)
		}
		for _, problem := range problems[:min(len(problems), problemsMax)] {
			t.Error(problem)
		}
		if len(problems) > 0 {
			t.Logf("%s, %v; Run returned %v", c.Name, r, err)
		}
	}
	if r.Stepped || c.HasProcesses() {
		run(t)
		return
	}
	synctest.Test(t, run)
}

// HasProcesses reports whether a processor runs in processes of its own.
func (c Case) HasProcesses() bool {
	return c.Options["work"] == "process" || c.Options["sink"] == "process" || c.Options["feed"] == "process"
}

// stopAfter returns the number of events after which a run is stopped.
func (r Run) stopAfter() int64 { return rand.New(rand.NewPCG(r.Seed, 1)).Int64N(8 * messages) }

// sendAll sends messages from outside, like an instance of a source. It calls between before each.
func sendAll(ctx context.Context, o Outside, first, instance int, between func()) {
	if o.Close == nil {
		return
	}
	defer o.Close()
	for n := range messages {
		between()
		id := SourceID(first+n, instance)
		s := o.Sends[id%len(o.Sends)]
		switch err := s.Do(ctx, id); {
		case err == nil && s.Asks:
			record(sent, s.Edge, id, 0, 0)
			record(replied, s.Edge, id, 0, 0)
		case err == nil, errors.Is(err, topo.ErrFailed), errors.Is(err, cluster.ErrUnreachable):
			record(sent, s.Edge, id, 0, 0)
		case s.Asks && (errors.Is(err, topo.ErrStopping) || errors.Is(err, context.DeadlineExceeded) || isPartial(err)):
			record(unsure, s.Edge, id, 0, 0)
		}
	}
}

// isPartial reports whether some instances have not answered.
func isPartial(err error) bool {
	_, ok := errors.AsType[*topo.PartialError](err)
	return ok
}

func step(top Topology, o Outside, r Run) error {
	s := top.Stepper(r.Seed)
	hangStepper = s.Hang
	after := r.stopAfter()
	stopDue := func() bool {
		due := r.Stop && plan.n.Load() >= after
		if due {
			s.Stop()
		}
		return due
	}
	sendAll(context.Background(), o, 0, 0, func() { s.Step(); stopDue() })
	for !stopDue() && s.Step() {
	}
	return s.Run()
}

// runWorkers runs a topology on workers. It also returns the time from the end of Run's context to
// its return.
func (c Case) runWorkers(top Topology, o Outside, r Run, g *group) (after time.Duration, err error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	if events := r.stopAfter(); r.Stop {
		onEvent = append(onEvent, func(n int64) {
			if n >= events {
				cancel(nil)
			}
		})
		if events == 0 {
			cancel(nil)
		}
	}
	late := time.AfterFunc(patience, func() { cancel(nil) })
	defer late.Stop()
	var end atomic.Pointer[time.Time]
	context.AfterFunc(ctx, func() { end.Store(new(time.Now())) })
	run := func() error {
		senders := make(chan struct{})
		go func() {
			defer close(senders)
			sendAll(context.Background(), o, 0, 0, func() {})
		}()
		err := top.Run(ctx)
		if at := end.Load(); at != nil {
			after = time.Since(*at)
		}
		<-senders
		return err
	}
	if c.Member == nil {
		err = run()
		return after, err
	}
	if err := g.start("n2", "n3"); err != nil {
		return 0, err
	}
	err = g.runBeside(r, run)
	return after, err
}

// stopsWithin returns the longest time from the end of Run's context to its return.
func (c Case) stopsWithin() time.Duration {
	drain, health := 10*time.Second, 500*time.Millisecond
	if c.Options["workers"] == "one" {
		drain = 5 * time.Second
	}
	return 2*drain + 3*time.Second + health
}
