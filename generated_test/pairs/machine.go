package pairs

import (
	"context"
	"fmt"

	"github.com/topogen/topogen/runtime/fsm"
)

// Apply is the update of the state machine: it counts an id. Its attempt is the new count, so that
// an update that is applied twice to the same state has two.
func Apply(seen *map[int]int, id int) {
	if *seen == nil {
		*seen = make(map[int]int)
	}
	(*seen)[id]++
	if !plan.recovers {
		record(began, "work.LedgerProposal", id, 0, (*seen)[id])
		record(done, "work.LedgerProposal", id, 0, (*seen)[id])
	}
}

// Outcome implements the handler for the outcome of an update.
func (i *Instance) Outcome(ctx context.Context, id int, err error) error {
	if fsm.OutcomeKnown(err) {
		kind := applied
		if err != nil {
			kind = refused
		}
		record(kind, "work.LedgerProposal", id, i.index, 0)
	}
	return i.Handle(ctx, "ledger.LedgerOutcome", id)
}

// compareState compares the state that is recovered from the log with the outcomes of the updates.
func (c Case) compareState(events []Event) (problems []string) {
	plan.recovers = true
	seen, err := c.Recovered()
	if err != nil {
		return []string{fmt.Sprintf("the log cannot be read: %v", err)}
	}
	for _, e := range events {
		switch n := seen[e.ID]; {
		case e.Where != "work.LedgerProposal":
		case e.Kind == applied && n != 1:
			problems = append(problems, fmt.Sprintf("update %d has succeeded, and is %d times in the recovered state", e.ID, n))
		case e.Kind == refused && n != 0:
			problems = append(problems, fmt.Sprintf("update %d has failed, and is %d times in the recovered state", e.ID, n))
		case e.Kind == done && n > 1:
			problems = append(problems, fmt.Sprintf("update %d is %d times in the recovered state", e.ID, n))
		}
	}
	return problems
}
