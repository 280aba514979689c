package clock

import "time"

// WaitingTimer says when a period is over (rast.md 2.8). Make one with
// NewWaitingTimer. It is not safe for concurrent use.
type WaitingTimer struct {
	period time.Duration
	begun  time.Duration // reading at which the period began
	timer  PeriodicTimer
}

// NewWaitingTimer returns a timer whose period begins now.
func NewWaitingTimer(period time.Duration) *WaitingTimer {
	t := &WaitingTimer{period: period}
	t.Reset()
	return t
}

// Check reports whether more than the period has passed since the timer was made
// or reset, and goes on to say so until it is reset again. It is never early, and
// late by fewer than 64 calls; not at all where calls are a millisecond or more
// apart, or just after WindUp.
func (t *WaitingTimer) Check() bool {
	t.timer.Passed()
	return t.timer.lastReading-t.begun > t.period // by the last reading: what Passed adds up to is older
}

// WindUp makes the next Check read the clock. Call it after each pause.
func (t *WaitingTimer) WindUp() { t.timer.WindUp() }

// Reset lets the period begin anew, now. It reads the clock.
func (t *WaitingTimer) Reset() {
	t.timer.Reset()
	t.timer.Passed()
	t.begun = t.timer.lastReading
}
