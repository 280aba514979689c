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
	Durable   []string   // the durable edges, as "sender.Message"
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

	Durable bool
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

// patience is the time after which a run is stopped.
const patience = 10 * time.Second

// leased is the time after which the store of a Stepper gives away the messages that its last topology
// has left.
const leased = time.Minute

// errLate is the error of a run that was stopped, although no call hangs.
var errLate = errors.New("the run did not end")

// Check runs a case and compares the ledger with the figures. If the case has durable edges, a second
// run without failures continues with their store.
func Check(t *testing.T, c Case, r Run) {
	t.Helper()
	if c.runInProgram(t, r) {
		return
	}
	p := Plan{
		Failure: r.Failure, Place: r.Place, Method: r.Method, Slow: r.Failure.IsHang() || c.HasProcesses(),
		Program: r.endsProgram(c), At: int(r.stopAfter()) % messages,
	}
	if p.Program && r.Stepped {
		p.Failure = NoFailure // the store crashes
	}
	if c.HasProcesses() || p.Program {
		p.Ledger = filepath.Join(memdir.New(t), "ledger")
	}
	if c.Recovered != nil {
		t.Setenv(raft.VariableDir, memdir.New(t))
	}
	store := c.newPromises(t, r)
	began := time.Now()
	begin(t, p)
	if p.Program && !r.Stepped {
		runProgram(t, store.dir)
	}
	run := func(t *testing.T) {
		var end result
		if !p.Program || r.Stepped {
			end = c.once(t, r, store.options()...)
		}
		hanging.Lock() // waits until all calls that hang have returned
		events, readErr := read()
		hanging.Unlock()
		if readErr != nil {
			t.Fatal(readErr)
		}
		var first ended
		if store != nil {
			first = c.endOfFirst(t, r, store, events, end.err, began)
		}
		var problems []string
		if !p.Program {
			problems = examine(c, r, events, end)
		}
		if end.state != nil || c.Recovered != nil && !r.Stepped {
			problems = append(problems, c.compareState(r, events, end.state, end.err == nil && !p.Program)...)
		}
		if store != nil {
			problems = append(problems, c.checkNext(t, r, store, first)...)
		}
		for _, problem := range problems[:min(len(problems), problemsMax)] {
			t.Error(problem)
		}
		if len(problems) > 0 {
			t.Logf("%s, %v; Run returned %v", c.Name, r, end.err)
		}
	}
	if r.Stepped || c.HasProcesses() {
		run(t)
		return
	}
	synctest.Test(t, run)
}

// result is the end of a run.
type result struct {
	figures  pool.Snapshot
	state    func() (map[int]int, error) // Outside.State
	err      error                       // of Run
	stopping time.Duration               // from the end of Run's context to its return
}

// once runs the topology once.
func (c Case) once(t *testing.T, r Run, options ...pool.Option) (end result) {
	t.Helper()
	released, hangStepper, onEvent = make(chan struct{}), nil, nil
	newNetwork()
	defer leave("n1")
	g := newGroup(c.Member)
	top, outside, err := c.New(append(options, pool.Logger(slog.New(slog.DiscardHandler)))...)
	if err != nil {
		t.Fatal(err)
	}
	var late bool
	if r.Stepped {
		late, end.err = step(top, outside, r)
	} else {
		late, end.stopping, end.err = c.runWorkers(top, outside, r, g)
	}
	if late && !r.Failure.IsHang() && !c.HasProcesses() { // on a busy host, processes may be slow
		end.err = errors.Join(end.err, errLate)
	}
	close(released)
	g.stop()
	if !r.Stepped && !c.HasProcesses() {
		synctest.Wait() // until a state machine whose update hung has closed its log
	}
	end.figures, end.state = top.Snapshot(), outside.State
	return end
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
	if plan.Next {
		return
	}
	for n := range messages {
		between()
		id := SourceID(first+n, instance)
		s := o.Sends[id%len(o.Sends)]
		switch err := s.Do(ctx, id); {
		case err == nil && s.Asks:
			record(sent, s.Edge, id, 0, 0)
			record(replied, s.Edge, id, 0, 0)
		case err == nil, errors.Is(err, topo.ErrFailed), errors.Is(err, cluster.ErrUnreachable), s.Durable && isAccepted(err):
			record(sent, s.Edge, id, 0, 0)
		case s.Durable:
			record(unsure, s.Edge, id, 0, 0)
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

// step runs a topology under its Stepper. It reports whether the run was late.
func step(top Topology, o Outside, r Run) (late bool, err error) {
	s := top.Stepper(r.Seed)
	hangStepper = s.Hang
	after := r.stopAfter()
	end := s.Now().Add(patience)
	if plan.Next {
		end = end.Add(leased)
	}
	stopDue := func() bool {
		late = s.Now().After(end)
		due := r.Stop && plan.n.Load() >= after || late
		if due {
			s.Stop()
		}
		return due
	}
	sendAll(context.Background(), o, 0, 0, func() { s.Step(); stopDue() })
	for !stopDue() && s.Step() {
	}
	return late, s.Run()
}

// runWorkers runs a topology on workers. It reports whether the run was late, and returns the time
// from the end of Run's context to its return.
func (c Case) runWorkers(top Topology, o Outside, r Run, g *group) (late bool, stopping time.Duration, err error) {
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
	timer := time.AfterFunc(patience, func() { cancel(errLate) })
	defer timer.Stop()
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
			stopping = time.Since(*at)
		}
		<-senders
		return err
	}
	if c.Member == nil {
		err = run()
	} else if err = g.start("n2", "n3"); err == nil {
		err = g.runBeside(r, run)
	}
	return context.Cause(ctx) == errLate, stopping, err
}

// stopsWithin returns the longest time from the end of Run's context to its return.
func (c Case) stopsWithin() time.Duration {
	drain, health := 10*time.Second, 500*time.Millisecond
	if c.Options["workers"] == "one" {
		drain = 5 * time.Second
	}
	return 2*drain + 3*time.Second + health
}
