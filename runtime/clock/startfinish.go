package clock

import (
	"math/rand/v2"
	"time"
)

// maxBlock is half of maxSteps, because up to two blocks less one pair lie
// between two measurements.
const maxBlock = maxSteps / 2

// StartFinishTimer counts how often something is done and adds up how long it
// takes (rast.md 2.7). The zero value is ready to use. It is not safe for
// concurrent use.
//
// It measures pairs of Start and Finish whole or not at all, so that nothing but
// the duration itself enters the sum. Pairs form blocks of 1, 2, 4 … 32; of each
// block one pair, chosen at random, is measured and stands for all. Blocks are as
// long as pairs that come within a millisecond: those a millisecond or more
// apart are measured each.
type StartFinishTimer struct {
	state   state
	count   uint64        // pairs that are finished
	next    uint64        // the pair to be measured next; pairs count from 0
	covered uint64        // pairs that sum stands for: those before the end of the last block with a measured pair
	sum     time.Duration // what they take
	block   int64         // pairs in the block of next; 0 for the first one and after WindUp
	lastSum time.Duration // the last result of Sum

	begun      time.Duration // reading at the Start that is being measured
	duration   time.Duration // of the last measured pair
	measured   time.Duration // reading at its Finish
	measuredAt uint64        // count at its Finish
}

// state is where between Start and Finish a timer is.
type state uint8

const (
	idle      state = iota // there was no Start since the last Finish
	running                // within a pair that is not measured
	measuring              // within one that is
)

// Start begins a pair. A second Start without a Finish begins it anew.
func (t *StartFinishTimer) Start() {
	t.state = running
	if t.count >= t.next {
		t.start()
	}
}

// Finish ends a pair. Without a Start since the last Finish or Reset it does
// nothing.
func (t *StartFinishTimer) Finish() {
	if t.state != running {
		t.finish()
		return
	}
	t.state = idle
	t.count++
}

// Count is the number of pairs. It is exact.
func (t *StartFinishTimer) Count() uint64 { return t.count }

// Sum is the time between Start and Finish of all pairs. It is exact where pairs
// are a millisecond or more apart and where all take the same time. Otherwise it
// is an estimate: without bias whenever a block ends, since each pair is measured
// with chance one in n and then counts n times; so a rare long duration counts
// for nothing or for up to 32 of its kind, and a sum over few pairs may exceed
// the time that has passed. Pairs after the last block take as long, until one
// of them is measured, as the last that was. Sum is never negative, and never
// less than before except by Reset.
func (t *StartFinishTimer) Sum() time.Duration {
	t.lastSum = max(t.lastSum, t.sum+t.uncovered())
	return t.lastSum
}

// WindUp ends the block: the next pair is measured. Call it after each pause.
func (t *StartFinishTimer) WindUp() { t.next = 0 }

// Reset makes the timer new. A pair that has begun does not count.
func (t *StartFinishTimer) Reset() { *t = StartFinishTimer{} }

// start begins to measure.
func (t *StartFinishTimer) start() {
	if t.count > t.next { // after WindUp
		t.sum += t.uncovered()
		t.covered, t.next, t.block = t.count, t.count, 0
	}
	t.state = measuring
	t.begun = now()
}

// finish ends the pair that is measured, lets it stand for its block, and plans
// the next one. How long that is depends on the past alone and not on what its
// pairs take, which keeps the sum without bias.
func (t *StartFinishTimer) finish() {
	if t.state == idle {
		return
	}
	now := now()
	woundUp := t.next != t.count // since Start
	t.state = idle
	t.count++
	t.duration = max(now-t.begun, 0) // a clock that runs backwards stands still
	pairs := max(t.block, 1)
	t.sum += t.duration * time.Duration(pairs)
	t.covered += uint64(pairs)

	t.block = max(1, min(2*t.block, maxBlock, within(int64(t.count-t.measuredAt), now-t.measured)))
	t.next = t.covered + rand.Uint64N(uint64(t.block))
	t.measured, t.measuredAt = now, t.count
	if woundUp {
		t.WindUp()
	}
}

// uncovered is what to add to sum for the pairs that are finished and not covered, or
// negative, to take off for those that are covered and not finished.
func (t *StartFinishTimer) uncovered() time.Duration {
	return t.duration * time.Duration(t.count-t.covered)
}
