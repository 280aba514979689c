package piper

import (
	"math/rand/v2"
	"time"
)

const (
	sampleTurnsMin  = 32     // from one turn that is timed to the next of a worker that is
	sampleTurnsMax  = 95     // the distance is drawn, so that it is everybody's in turn
	longNanosMin    = 10_000 // a turn whose clock readings are a hundredth of it
	turnNanosMax    = 40_000 // longer turns are cut: an idle worker waits for their end
	turnMessagesMin = 8      // in a turn that is cut
)

// weigh says how many turns the next one of u is to be timed for; 0: it is not
// timed. Long turns are all timed, which costs little beside them, since the few
// that there are in a period would make a bad sample; so is the first, which may
// be one, and so are those of an instance with a goroutine of its own, whose
// handlers are there to take long. A long turn among short ones is one in sixty.
func (w *Worker) sampleWeight(u *Unit) (turns int32) {
	if !u.longTurn {
		if w.turnsToSample--; w.turnsToSample > 0 {
			return 0
		}
	}
	return w.nextSampleWeight(u)
}

// weighOne is weigh where the turn is to be timed.
func (w *Worker) nextSampleWeight(u *Unit) (turns int32) {
	switch {
	case w.stepped:
		return 0
	case u.longTurn:
		return 1
	}
	turns = w.sampleDistance
	w.sampleDistance = sampleTurnsMin + rand.Int32N(sampleTurnsMax-sampleTurnsMin+1)
	w.turnsToSample = w.sampleDistance
	return turns
}

// adapt learns from the time that a turn took. Long turns are shortened to
// where a donation comes soon enough, and short ones grow to the batch again.
func (u *Unit) adaptBudget(took time.Duration, w *Worker) {
	nanos := uint64(took)
	u.longTurn = nanos > longNanosMin || w.index < 0
	u.turnNanos = uint32(min((uint64(u.turnNanos)+nanos)/2+1, 1<<32-1))
	if w.index < 0 {
		return // there it takes one message a turn
	}
	budget := u.budgetOf(w.batch)
	if nanos > turnNanosMax {
		u.budget = int32(max(budget/2, turnMessagesMin))
	} else if nanos < turnNanosMax/4 {
		u.budget = int32(min(budget*2, w.batch))
	}
}

// budgetOf is how many messages u may take from one queue in a turn.
func (u *Unit) budgetOf(batch int) int {
	if u.budget == 0 {
		return batch
	}
	return min(int(u.budget), batch)
}
