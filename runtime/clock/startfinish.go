package clock

import (
	"math/rand/v2"
	"time"
)

// maxBlock is half of maxSteps, because there can be almost two blocks of pairs between two
// measurements.
const maxBlock = maxSteps / 2

// StartFinishTimer counts how often an operation was done and adds up its durations. The
// zero value is ready to use. It is not safe for concurrent use.
//
// It measures a pair of Start and Finish completely or not at all, so that the sum only
// contains durations. Pairs form blocks of 1, 2, 4 … 32. In each block one pair, chosen
// at random, is measured and represents the block. A block contains the pairs that come
// within about a millisecond; if pairs are a millisecond or more apart, each pair is
// measured.
type StartFinishTimer struct {
	state   state
	count   uint64        // finished pairs
	next    uint64        // the pair that is measured next; pairs count from 0
	covered uint64        // pairs that sum represents: all up to the end of the last block with a measured pair
	sum     time.Duration // estimated time of these pairs
	block   int64         // pairs in the block of next; 0 for the first block and after WindUp
	lastSum time.Duration // the last result of Sum

	begun      time.Duration // reading at the Start that is measured
	duration   time.Duration // of the last measured pair
	measured   time.Duration // reading at the Finish of that pair
	measuredAt uint64        // count at the Finish of that pair
}

// state is the state of a timer between Start and Finish.
type state uint8

const (
	idle      state = iota // no Start since the last Finish
	running                // in a pair that is not measured
	measuring              // in a pair that is measured
)

// Start begins a pair. A second Start without a Finish begins the pair again.
func (t *StartFinishTimer) Start() {
	t.state = running
	if t.count >= t.next {
		t.start()
	}
}

// Finish ends a pair. It does nothing without a Start since the last Finish or Reset.
func (t *StartFinishTimer) Finish() {
	if t.state != running {
		t.finish()
		return
	}
	t.state = idle
	t.count++
}

// Count is the exact number of pairs.
func (t *StartFinishTimer) Count() uint64 { return t.count }

// Sum is the total time between Start and Finish of all pairs. It is exact if pairs are a
// millisecond or more apart, or if all pairs take the same time. Otherwise it is an
// estimate. The estimate is unbiased at the end of each block, because each pair is
// measured with probability 1/n and then counts n times. A rare long duration therefore
// counts 0 to 32 times, and a sum over few pairs may exceed the time that has passed.
// Pairs after the last block count like the last measured pair, until one of them is
// measured. Sum is never negative, and only Reset makes it smaller.
func (t *StartFinishTimer) Sum() time.Duration {
	t.lastSum = max(t.lastSum, t.sum+t.uncovered())
	return t.lastSum
}

// WindUp ends the block: the next pair is measured. Call it after each pause.
func (t *StartFinishTimer) WindUp() { t.next = 0 }

// Reset makes the timer new. A pair that has begun is discarded.
func (t *StartFinishTimer) Reset() { *t = StartFinishTimer{} }

// start begins a measurement.
func (t *StartFinishTimer) start() {
	if t.count > t.next { // after WindUp
		t.sum += t.uncovered()
		t.covered, t.next, t.block = t.count, t.count, 0
	}
	t.state = measuring
	t.begun = now()
}

// finish ends the measured pair, adds it for all pairs of its block, and chooses the next
// pair to measure. The length of the next block depends only on earlier pairs, not on the
// durations of its own pairs, which keeps the sum unbiased.
func (t *StartFinishTimer) finish() {
	if t.state == idle {
		return
	}
	now := now()
	woundUp := t.next != t.count // WindUp was called since Start
	t.state = idle
	t.count++
	t.duration = max(now-t.begun, 0) // if the clock runs backwards, no time has passed
	pairs := max(t.block, 1)
	t.sum += t.duration * time.Duration(pairs)
	t.covered += uint64(pairs)

	t.block = max(1, min(2*t.block, maxBlock, callsPerPeriod(int64(t.count-t.measuredAt), now-t.measured)))
	t.next = t.covered + rand.Uint64N(uint64(t.block))
	t.measured, t.measuredAt = now, t.count
	if woundUp {
		t.WindUp()
	}
}

// uncovered is the correction of sum for pairs that are finished but not covered. It is
// negative if pairs are covered but not finished.
func (t *StartFinishTimer) uncovered() time.Duration {
	return t.duration * time.Duration(t.count-t.covered)
}
