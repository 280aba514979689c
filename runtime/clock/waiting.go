package clock

import "time"

// WaitingTimer reports when a period has passed. Use NewWaitingTimer. It is not safe for
// concurrent use.
type WaitingTimer struct {
	period time.Duration
	begun  time.Duration // reading at the beginning of the period
	timer  PeriodicTimer
}

// NewWaitingTimer returns a timer whose period begins now.
func NewWaitingTimer(period time.Duration) *WaitingTimer {
	t := &WaitingTimer{period: period}
	t.Reset()
	return t
}

// Check reports whether more than the period has passed since the timer was made or
// reset. Once true, it stays true until Reset. It is never early, and fewer than 64 calls
// late. It is not late at all if calls are a millisecond or more apart, or directly after
// WindUp.
func (t *WaitingTimer) Check() bool {
	t.timer.Passed()
	return t.timer.lastReading-t.begun > t.period // uses the last reading, which is later than the sum of Passed
}

// WindUp makes the next Check read the clock. Call it after each pause.
func (t *WaitingTimer) WindUp() { t.timer.WindUp() }

// Reset begins the period again, now. It reads the clock.
func (t *WaitingTimer) Reset() {
	t.timer.Reset()
	t.timer.Passed()
	t.begun = t.timer.lastReading
}
