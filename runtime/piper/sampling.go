package piper

import (
	"math/rand/v2"
	"time"
)

const (
	sampleTurnsMin  = 32     // minimum number of turns from one timed turn of a worker to the next
	sampleTurnsMax  = 95     // maximum; the distance is random, so that all instances are sampled
	longNanosMin    = 10_000 // a long turn: reading the clock takes at most a hundredth of it
	turnNanosMax    = 40_000 // longer turns are shortened, because an idle worker may wait for their end
	turnMessagesMin = 8      // minimum number of messages in a shortened turn
)

// sampler decides which turns of a worker are timed.
type sampler struct {
	untilNext int32 // turns left until one is timed
	distance  int32 // turns between the last timed turn and the next one
	never     bool  // under a Stepper
}

// weight is the number of turns that the next turn of u counts for, or 0 if the
// turn is not timed. All long turns are timed: the relative cost is small, and the few
// long turns of a period would be a bad sample. The first turn is timed because it may
// be long. All turns of an instance with a goroutine of its own are timed, because its
// handlers are expected to take long. A long turn that follows short turns of the same
// instance is sampled as rarely as those, about one in sixty.
func (s *sampler) weight(u *Unit) (turns int32) {
	if !u.longTurn {
		if s.untilNext--; s.untilNext > 0 {
			return 0
		}
	}
	return s.nextWeight(u)
}

// nextWeight is weight for a turn that is timed.
func (s *sampler) nextWeight(u *Unit) (turns int32) {
	switch {
	case s.never:
		return 0
	case u.longTurn:
		return 1
	}
	turns = s.distance
	s.distance = sampleTurnsMin + rand.Int32N(sampleTurnsMax-sampleTurnsMin+1)
	s.untilNext = s.distance
	return turns
}

// pace is how long the turns of an instance take, and what follows from it.
type pace struct {
	budget      int32  // messages in a turn, if it is less than the batch; 0 before it was measured
	quickTurns  uint32 // number of consecutive quick turns outside the pool
	turnNanos   uint32 // average duration of recent timed turns
	soloReturns uint8  // how often it left the pool and came back because its turns were quick
	slow        bool   // a call took long, and its turns have not been quick since
	longTurn    bool   // the next turn is timed, because the last one was long, may have been long, or was outside the pool
}

// adaptBudget adapts the budget to the duration of a turn. It shortens long turns so
// that an idle worker soon gets an instance, and lengthens short turns up to the batch. A turn of a remote
// instance calls no handler: it encodes its messages, and may then send those of all instances. It is not
// shortened, because most of its time does not depend on the number of its messages.
func (p *pace) adaptBudget(took time.Duration, w *Worker, remote bool) {
	nanos := uint64(took)
	p.longTurn = nanos > longNanosMin || w.index < 0
	p.turnNanos = uint32(min((uint64(p.turnNanos)+nanos)/2+1, 1<<32-1))
	if w.index < 0 || remote {
		return // outside the pool a turn takes one message; for remote see above
	}
	budget := p.budgetOf(w.batch)
	if nanos > turnNanosMax {
		p.budget = int32(max(budget/2, turnMessagesMin))
	} else if nanos < turnNanosMax/4 {
		p.budget = int32(min(budget*2, w.batch))
	}
}

// budgetOf is the number of messages that the instance may handle in a turn.
func (p *pace) budgetOf(batch int) int {
	if p.budget == 0 {
		return batch
	}
	return min(int(p.budget), batch)
}
