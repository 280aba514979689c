package pairs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/fsm"
)

// The updates of a state machine come along one of these edges. An update that is added and not
// proposed has a negative id.
const (
	proposedEdge = "work.LedgerProposal"
	addedEdge    = "work.LedgerUpdates"
)

func edgeOf(id int) string {
	if id < 0 {
		return addedEdge
	}
	return proposedEdge
}

// Apply is the update of the state machine: it counts an id. Its attempt is the new count, so that
// an update that is applied twice to the same state has two.
func Apply(seen *map[int]int, id int) error {
	if *seen == nil {
		*seen = make(map[int]int)
	}
	n := (*seen)[id] + 1
	note(began, id, n)
	if failsUpdate("", id) && plan.Failure != Panic { // after a panic the runtime must restore the state
		if err := failUpdate(id, n); err != nil {
			return err
		}
	}
	(*seen)[id] = n
	if failsUpdate("", id) && plan.Failure == Panic {
		return failUpdate(id, n)
	}
	note(done, id, n)
	return nil
}

// Revert undoes Apply.
func Revert(seen map[int]int, id int) error {
	if failsUpdate("Revert", id) {
		if err := failUpdate(id, 0); err != nil {
			return err
		}
	}
	if seen[id]--; seen[id] == 0 {
		delete(seen, id)
	}
	return nil
}

// note records an event of an update, unless the state is recovered.
func note(kind Kind, id, attempt int) {
	if !plan.recovers {
		record(kind, edgeOf(id), id, 0, attempt)
	}
}

// failsUpdate reports whether a method of an update fails, in the same way each time. It depends on
// the message in whose handler the update was sent, and on its attempt.
func failsUpdate(method string, id int) bool {
	if id < 0 {
		id = -id - 1
	}
	return plan.Place == "ledger" && plan.Method == method && plan.Failure != NoFailure && failsAt(id/attemptsMax/instancesMax, id%attemptsMax)
}

// failUpdate fails in the planned way. A failure that ends or blocks the goroutine does not occur
// again when the state is recovered. Otherwise the log could not be opened.
func failUpdate(id, attempt int) error {
	if plan.recovers && !plan.Failure.isUndone() {
		return nil
	}
	note(failed, id, attempt)
	return fail(context.Background())
}

// isUndone reports whether the update of a log that fails in this way has changed nothing, and the
// log goes on.
func (f Failure) isUndone() bool { return f == ReturnErr || f == Joined || f == Panic }

// Controller has the sends of work to a state machine with revert: true.
type Controller struct {
	Propose, Add             func(id int)
	Commit, Revert, Upcoming func()
}

// Control returns a Send that adds an update, and then commits or reverts the added updates, proposes
// another update, or asks for the updates that are not committed. Only the first instance sends, so
// that the ledger has the order in which the state machine receives the messages.
func (i *Instance) Control(c Controller) Send {
	return Send{Do: func(id int) error {
		if i.index > 0 {
			return nil
		}
		c.Add(-id - 1)
		record(sent, addedEdge, -id-1, 0, 0)
		switch i.made++; i.made % 5 {
		case 1:
			c.Upcoming()
			record(sent, "work.LedgerGetUpcoming", id, 0, 0)
		case 2:
			c.Revert()
			record(sent, "work.LedgerRevert", id, 0, 0)
		case 3:
			c.Propose(id)
			record(sent, proposedEdge, id, 0, 0)
		case 4:
			c.Commit()
			record(sent, "work.LedgerCommit", id, 0, 0)
		}
		return nil
	}}
}

// Uncommitted implements the handler for updates that are not committed.
func (i *Instance) Uncommitted(ids ...int) error {
	sum := 0
	for _, id := range ids {
		sum += id
	}
	record(upcoming, "ledger.LedgerUpcoming", sum, len(ids), 0)
	return nil
}

// Outcome implements the handler for the outcome of an update.
func (i *Instance) Outcome(ctx context.Context, id int, err error) error {
	if fsm.OutcomeKnown(err) {
		kind := applied
		if err != nil {
			kind = refused
		}
		record(kind, proposedEdge, id, i.index, 0)
	}
	return i.Handle(ctx, "ledger.LedgerOutcome", id)
}

// isPlanned reports whether an error was planned. A log keeps only the text of an error.
func isPlanned(err error) bool {
	return err != nil && strings.Contains(err.Error(), errPlanned.Error())
}

// allOfMachine runs a case with each failure in the methods Update and Revert of a state machine.
func (c Case) allOfMachine(t *testing.T) {
	for m, method := range []string{"", "Revert"} {
		for i, f := range []Failure{ReturnErr, Joined, Panic, Goexit, Deaf} {
			for n, r := range ways {
				r.Failure, r.Place, r.Method, r.Seed = f, "ledger", method, c.Seed*100+uint64(i*10+n)
				if c.canRunMachine(r) && c.isChosenOfMachine(t, r, c.Index+m+i, n) {
					t.Run(fmt.Sprintf("%s-ledger%s-%d", f, method, n), func(t *testing.T) { Check(t, c, r) })
				}
			}
		}
	}
}

// canRunMachine reports whether the test makes a run with the case in which the state machine fails.
func (c Case) canRunMachine(r Run) bool {
	switch {
	case c.Options["machine"] == "no",
		r.Method == "Revert" && c.Options["revert"] == "no":
		return false
	case r.Stepped && (r.Failure == Goexit || r.Failure == Deaf):
		return false // it would end or block the goroutine of the test
	case r.Stepped && c.asksDurable():
		return false // as in canRun
	case c.HasProcesses() && r.Failure == Deaf:
		return false // the drain timeout takes long in real time
	}
	return true
}

// isChosenOfMachine is isChosen for runs in which the state machine fails.
func (c Case) isChosenOfMachine(t *testing.T, r Run, turn, way int) bool {
	n := 2
	if c.Recovered != nil || c.HasProcesses() {
		n = 6
	}
	return speed.Pick(t, false, false, true) || turn%len(ways) == way && c.isOneIn(n, r)
}

// isFatalUpdate reports whether a failure of an update ends Run.
func (x *examination) isFatalUpdate() bool {
	if x.run.Method == "Revert" || x.run.Failure == Goexit || x.run.Failure == Deaf || x.run.Failure == Panic && x.Recovered == nil {
		return true
	}
	return slices.ContainsFunc(x.events, func(e Event) bool { return e.Kind == failed && e.Where == addedEdge })
}

// withoutRepetitions removes repeated events of updates: with -race, a copy of the state gets the
// update too, and a state is rebuilt from its updates after one of them has failed.
func withoutRepetitions(events []Event) []Event {
	seen := make(map[Event]bool)
	return slices.DeleteFunc(slices.Clone(events), func(e Event) bool {
		if e.Where != proposedEdge && e.Where != addedEdge || e.Kind != began && e.Kind != done {
			return false
		}
		was := seen[e]
		seen[e] = true
		return was
	})
}

// mayNotLead reports whether proposals may be refused because another node leads.
func (c Case) mayNotLead() bool {
	return c.Options["machine"] == "raft" && c.Options["machine.form"] == "second"
}

// outcomes checks that each update has one outcome, which says whether it has failed.
func (x *examination) outcomes() {
	proposals, answers := uint64(0), uint64(0)
	for _, e := range x.figures.Edges {
		switch e.Message {
		case "LedgerProposal":
			proposals += e.Received
		case "LedgerOutcome":
			answers += e.Sent
		}
	}
	if x.isWhole() && proposals != answers {
		x.problem("the state machine has received %d proposals, and sent %d outcomes", proposals, answers)
	}
	for _, e := range x.events {
		switch fails := x.run.Failure.isUndone() && failsUpdate("", e.ID); {
		case e.Kind == applied && fails:
			x.problem("update %d has failed, and its outcome has no error", e.ID)
		case e.Kind == refused && !fails && x.isWhole() && !x.mayNotLead():
			x.problem("update %d has not failed, and its outcome has an error", e.ID)
		}
	}
}

// compareState compares the state with the ledger. With a log it is the state that is recovered from
// the log.
func (c Case) compareState(r Run, events []Event, state func() (map[int]int, error), whole bool) (problems []string) {
	if c.Recovered != nil && !r.Stepped { // a Stepper writes no log
		plan.recovers, state = true, c.Recovered
	}
	seen, err := state()
	if err != nil && !errors.Is(err, fsm.ErrNotRunning) { // a state machine that has not started has no state
		return []string{fmt.Sprintf("the state cannot be read: %v", err)}
	}
	if c.Options["revert"] == "yes" {
		problems = c.compareHistory(r, events, seen, whole)
	}
	sends := make(map[int]int) // the next process of a node that has crashed may send an update again
	for _, e := range events {
		if e.Kind == sent && e.Where == proposedEdge && r.Fault == Crash {
			sends[e.ID]++
		}
	}
	for _, e := range events {
		most := max(1, sends[e.ID])
		switch n := seen[e.ID]; {
		case e.Where != proposedEdge:
		case e.Kind == applied && (n < 1 || n > most):
			problems = append(problems, fmt.Sprintf("update %d has succeeded, and is %d times in the state", e.ID, n))
		case e.Kind == refused && n != 0:
			problems = append(problems, fmt.Sprintf("update %d has failed, and is %d times in the state", e.ID, n))
		case e.Kind == done && n > most:
			problems = append(problems, fmt.Sprintf("update %d is %d times in the state", e.ID, n))
		}
	}
	return problems
}

// compareHistory compares the state with the updates, commits and reverts that were sent. It must be
// the state after one of these messages, and after the last one if the topology has run to its end.
func (c Case) compareHistory(r Run, events []Event, seen map[int]int, whole bool) []string {
	var pending []int // ids of updates that are not committed
	state, found := make(map[int]int), false
	var expected, answers [][2]int // number and sum of the ids at each GetUpcoming
	compare := func() { found = maps.Equal(state, seen) || found && !whole }
	compare()
	hasFailed := make(map[int]bool) // the updates that have failed in this process
	for _, e := range events {
		hasFailed[e.ID] = hasFailed[e.ID] || e.Kind == failed && e.Where == edgeOf(e.ID)
	}
	fails := func(method string, id int) bool {
		if c.Recovered == nil && (r.Failure == Panic && method == "" || !hasFailed[id]) {
			return false // in memory, a panic ends the topology, and an update that is not applied yet is reverted without a call
		}
		return r.Failure.isUndone() && r.Method == method && failsUpdate(method, id)
	}
	for _, e := range events {
		switch {
		case e.Kind == upcoming:
			answers = append(answers, [2]int{e.Instance, e.ID})
		case e.Kind != sent:
		case e.Where == addedEdge && !fails("", e.ID):
			pending = append(pending, e.ID)
			state[e.ID] = 1
		case e.Where == proposedEdge && !fails("", e.ID):
			pending, state[e.ID] = nil, 1
		case e.Where == "work.LedgerCommit":
			pending = nil
		case e.Where == "work.LedgerRevert":
			if c.Recovered != nil && slices.ContainsFunc(pending, func(id int) bool { return fails("Revert", id) }) {
				break // a revert that fails changes nothing
			}
			for len(pending) > 0 {
				id := pending[len(pending)-1]
				if fails("Revert", id) {
					break
				}
				pending = pending[:len(pending)-1]
				delete(state, id)
				compare()
			}
		case e.Where == "work.LedgerGetUpcoming":
			sum := 0
			for _, id := range pending {
				sum += id
			}
			expected = append(expected, [2]int{len(pending), sum})
		}
		compare()
	}
	var problems []string
	if !found {
		problems = append(problems, fmt.Sprintf("the state does not follow from the updates, commits and reverts: it has %d updates", len(seen)))
	}
	if len(answers) > len(expected) || !slices.Equal(answers, expected[:len(answers)]) || whole && len(answers) < len(expected) {
		problems = append(problems, fmt.Sprintf("the updates that are not committed were %v, want %v", answers, expected))
	}
	return problems
}
