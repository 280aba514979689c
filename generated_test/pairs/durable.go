package pairs

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/runtime/durable"
	"github.com/topogen/topogen/runtime/durable/edges"
	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/store"
	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/topo"
)

// isDurable reports whether an edge is durable.
func (c Case) isDurable(edge string) bool { return slices.Contains(c.Durable, edge) }

// runsDurable reports whether a processor receives a durable edge.
func (c Case) runsDurable(processor string) bool {
	return slices.ContainsFunc(c.Durable, func(edge string) bool { return receiver(edge) == processor })
}

// asksDurable reports whether an instance of feed waits for replies along a durable edge.
func (c Case) asksDurable() bool {
	return c.isDurable("feed.One") && c.Options["reply"] == "yes" && c.Options["feed"] != "outside"
}

// Twice sends some messages twice. The second one has the id of the first.
func Twice(id int, send func() error) error {
	if err := send(); err != nil || id%onceEvery != 0 {
		return err
	}
	return send()
}

// isAccepted reports whether an error of an Ask comes after its message was accepted: the execution
// has ended, or its instance was given up.
func isAccepted(err error) bool {
	_, ok := errors.AsType[*durable.Error](err)
	return ok || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, topo.ErrFailed)
}

// HandleDurable is Handle for a durable edge. It has one step.
func (i *Instance) HandleDurable(ctx durable.Context, edge string, id int, sends ...Send) error {
	record(began, edge, id, i.index, ctx.Attempt())
	_, err := durable.Step(ctx, "step", func(context.Context) (durable.None, error) {
		record(stepped, edge, id, i.index, ctx.Attempt())
		return durable.None{}, nil
	})
	if err != nil {
		return err
	}
	call := activation(edge, id)
	for _, s := range sends {
		n := call
		if s.Durable {
			n = 0 // each replay must send the same message
		}
		if err := s.send((id*instancesMax+i.index)*attemptsMax + n); err != nil {
			return fmt.Errorf("send %d: %w", id, err)
		}
	}
	if err := i.mayFail(ctx, edge, id, ctx.Attempt()); err != nil {
		return err
	}
	record(done, edge, id, i.index, ctx.Attempt())
	return nil
}

// activation counts the calls of the handler of a message. Each call sends its ordinary messages
// again, and they need other ids.
func activation(edge string, id int) int {
	plan.mu.Lock()
	defer plan.mu.Unlock()
	m := message{edge, id}
	if plan.activations[m]++; plan.activations[m] == attemptsMax {
		panic("pairs: the ids of the messages of so many calls are those of another instance")
	}
	return plan.activations[m]
}

// promises is the store of a case with durable edges. Two runs use it, one after the other.
type promises struct {
	memory *edges.Memory // under a Stepper
	dir    string
}

// newPromises makes an empty store. It returns nil if no edge is durable.
func (c Case) newPromises(t *testing.T, r Run) *promises {
	switch {
	case len(c.Durable) == 0:
		return nil
	case r.Stepped:
		p := &promises{memory: edges.NewMemory()}
		if r.endsProgram(c) {
			p.memory.CrashAfter(int(r.stopAfter()))
		}
		return p
	}
	return &promises{dir: memdir.New(t)}
}

func (p *promises) options() []pool.Option {
	switch {
	case p == nil:
		return nil
	case p.memory != nil:
		return []pool.Option{pool.DurableMemory(p.memory)}
	}
	return []pool.Option{pool.DurableStore(p.dir)}
}

// crashed reports whether the store of a Stepper has crashed.
func (p *promises) crashed() bool { return p.memory != nil && p.memory.Crashed() }

// message identifies a message along a durable edge.
type message struct {
	edge string
	id   int
}

// states are the states of the promises of each message.
type states map[message][]protocol.PromiseState

// read returns the states of all messages in the store, which no topology may use.
func (p *promises) read(topology string) (all states, err error) {
	b := protocol.Backend(p.memory)
	if p.memory == nil {
		disk, err := store.Open(p.dir, store.Options{})
		if err != nil {
			return nil, err
		}
		e, err := engine.Open(engine.Config{Store: disk})
		if err != nil {
			return nil, errors.Join(err, disk.Close())
		}
		defer func() { err = errors.Join(err, e.Close(context.Background())) }()
		b = e
	}
	all = make(states)
	search := protocol.PromiseSearch{Tags: map[string]string{protocol.TagTarget: "poll://any@" + topology}, Limit: protocol.MaxSearch}
	for {
		r, err := b.Do(context.Background(), search)
		if err != nil {
			return nil, err
		}
		for _, found := range r.Promises {
			m, err := messageOf(found.Param)
			if err != nil {
				return nil, err
			}
			all[m] = append(all[m], found.State)
		}
		if search.Cursor = r.Cursor; search.Cursor == "" {
			return all, nil
		}
	}
}

// messageOf decodes the parameter of a promise.
func messageOf(v protocol.Value) (m message, err error) {
	var call struct {
		Func string
		Args []struct{ ID int }
	}
	text, err := base64.StdEncoding.DecodeString(*v.Data)
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(text, &call); err != nil || len(call.Args) != 1 {
		return m, fmt.Errorf("%s: %w", text, err)
	}
	parts := strings.Split(call.Func, ".") // sender, receiver, message
	return message{parts[0] + "." + parts[2], call.Args[0].ID}, nil
}

// tally counts the events of the messages along durable edges.
func (c Case) tally(events []Event) map[message]map[Kind]int {
	all := make(map[message]map[Kind]int)
	for _, e := range events {
		if m := (message{e.Where, e.ID}); c.isDurable(e.Where) {
			if all[m] == nil {
				all[m] = make(map[Kind]int)
			}
			all[m][e.Kind]++
		}
	}
	return all
}

// ended is the end of one of the two runs of a case with durable edges.
type ended struct {
	tally map[message]map[Kind]int
	store states    // after the run
	whole bool      // it was not stopped and did not fail
	waits bool      // an instance hangs or was given up, so that deadlines can pass
	began time.Time // when the first run of the case began
}

// Deadline is the timeout of a durable edge whose option kept is deadline.
const Deadline = 3 * time.Second

// late reports whether deadlines of the run can have passed by now. With processes a run is in
// real time, which passes on a busy computer too.
func (e ended) late() bool { return time.Since(e.began) >= Deadline }

// compareRuns compares the store and the ledgers of two runs. No handler of the second one fails.
func (c Case) compareRuns(first, second ended) (problems []string) {
	problem := func(m message, format string, args ...any) {
		problems = append(problems, fmt.Sprintf("%s %d ", m.edge, m.id)+fmt.Sprintf(format, args...))
	}
	for m, n := range first.tally {
		if n[sent] > 0 && len(first.store[m]) == 0 {
			problem(m, "was accepted, and is not in the store")
		}
	}
	for m, list := range second.store {
		if len(list) > 1 {
			problem(m, "has %d promises", len(list))
		}
		state, before, a, b := list[0], protocol.Pending, first.tally[m], second.tally[m]
		isNew := len(first.store[m]) == 0
		if !isNew {
			before = first.store[m][0]
			for _, text := range c.checkFirst(first, before, a) {
				problem(m, "%s", text)
			}
			if letters := c.letters(m, before); first.whole && a[letter] != letters {
				problem(m, "is %s, and was %d times a dead letter", before, a[letter])
			}
		}
		calls := a
		switch {
		case before != protocol.Pending && b[began] > 0:
			problem(m, "was handled again after its promise was %s", before)
		case before != protocol.Pending && state != before:
			problem(m, "was %s, and is %s", before, state)
		case before == protocol.Pending && state == protocol.RejectedTimeout && c.Options["kept"] == "deadline" && (c.Member != nil || c.HasProcesses() && first.late()):
			// the deadline has passed while the group started again to compare its state, or while processes started
		case before == protocol.Pending && (state != protocol.Resolved || b[done] != 1):
			problem(m, "is %s after the next run, which handled it %d times", state, b[done])
		case before == protocol.Pending:
			calls = b
		}
		if calls[done] > 1 || a[stepped] > 1 || b[stepped] > 1 {
			problem(m, "was handled %d times, and its step %d and then %d times", calls[done], a[stepped], b[stepped])
		}
	}
	return problems
}

// compareCrash compares the ledgers of two runs with the store, if the store of the first one has
// crashed and no handler has failed.
func (c Case) compareCrash(first, second ended) (problems []string) {
	for m, n := range first.tally {
		if n[sent] > 0 && len(second.store[m]) == 0 {
			problems = append(problems, fmt.Sprintf("%s %d was accepted, and is not in the store", m.edge, m.id))
		}
	}
	for m, list := range second.store {
		if c.Options["kept"] == "deadline" && list[0] == protocol.RejectedTimeout {
			continue // the lease of the first run ends later
		}
		calls := first.tally[m][done] + second.tally[m][done]
		if !slices.Equal(list, []protocol.PromiseState{protocol.Resolved}) || calls < 1 || calls > 2 {
			problems = append(problems, fmt.Sprintf("%s %d is %v after a crash and another run, and was handled %d times", m.edge, m.id, list, calls))
		}
	}
	return problems
}

// letters returns how often a message is a dead letter.
func (c Case) letters(m message, state protocol.PromiseState) int {
	if c.Options["letters"] == "yes" && receiver(m.edge) == "work" && state == protocol.Rejected {
		return 1
	}
	return 0
}

// checkFirst compares the state of a message with the events of the first run.
func (c Case) checkFirst(first ended, state protocol.PromiseState, n map[Kind]int) (problems []string) {
	switch {
	case state == protocol.Pending && first.whole:
		problems = append(problems, "is pending, and nothing has ended the run")
	case state == protocol.Resolved && n[done] == 0:
		problems = append(problems, "is resolved, and its handler has not succeeded")
	case state == protocol.Rejected && (n[failed] == 0 || n[done] > 0):
		problems = append(problems, fmt.Sprintf("is rejected, and its handler has failed %d times and succeeded %d times", n[failed], n[done]))
	case state == protocol.RejectedTimeout && (c.Options["kept"] != "deadline" || !first.waits):
		problems = append(problems, "has reached its deadline")
	}
	return problems
}

// endOfFirst returns the end of the first run of a case with durable edges. Do not wait between
// the run and this call: the deadlines of messages would pass in that time.
func (c Case) endOfFirst(t *testing.T, r Run, store *promises, events []Event, err error, began time.Time) ended {
	t.Helper()
	first := ended{began: began, tally: c.tally(events), whole: err == nil && !r.Stop && !r.Failure.IsHang() && !r.endsProgram(c)}
	first.waits = r.Failure.IsHang() || c.HasProcesses() || errors.Is(err, pool.ErrGaveUp)
	if !store.crashed() { // else the store answers to the next topology only
		if first.store, err = store.read(c.Name); err != nil {
			t.Fatal(err)
		}
	}
	return first
}

// checkNext makes the second run of a case with durable edges, and compares both runs.
func (c Case) checkNext(t *testing.T, r Run, store *promises, first ended) (problems []string) {
	t.Helper()
	next, crashed := Run{Stepped: r.Stepped, Seed: r.Seed}, store.crashed()
	begin(t, Plan{Ledger: plan.Ledger, Slow: plan.Slow, Next: true})
	for m, n := range first.tally {
		plan.activations[m] = n[began] // the log has the updates of the first run
	}
	plan.recovers = c.Recovered != nil // the log calls Update again
	end := c.once(t, next, store.options()...)
	events, err := read()
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range examine(c, next, events, end) {
		problems = append(problems, "the next run: "+problem)
	}
	second := ended{tally: c.tally(events)}
	if second.store, err = store.read(c.Name); err != nil {
		t.Fatal(err)
	}
	if crashed {
		return append(problems, c.compareCrash(first, second)...)
	}
	return append(problems, c.compareRuns(first, second)...)
}
