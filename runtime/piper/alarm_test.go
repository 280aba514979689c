package piper

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestAnAlarmIgnoresPauses runs an alarm whose checks are on time, except for one pause of the
// process. The time while the process runs must add up to the full wait when the alarm is due. It
// may differ by one interval of the checks, because a check cannot detect a shorter pause.
func TestAnAlarmIgnoresPauses(t *testing.T) {
	const wait = int64(time.Second)
	for _, pause := range []int64{0, wait / 2, wait, 3 * wait, int64(time.Hour)} {
		for begins := int64(0); begins < wait; begins += wait / 50 {
			a := alarm{at: wait, step: wait / pauseChecks, check: wait / pauseChecks}
			clock, due := a.check, false
			for begun := false; ; {
				if !begun && clock > begins { // the pause was before this check
					begun = true
					clock = max(clock, begins+pause)
				}
				at := int64(0)
				if due, at = a.due(clock); due {
					break
				}
				if at <= clock {
					t.Fatalf("pause %d at %d: at %d the next check is at %d", pause, begins, clock, at)
				}
				clock = at
			}
			if ran := clock - pause; ran < wait-wait/pauseChecks || pause == 0 && ran != wait || ran > wait+wait/pauseChecks {
				t.Errorf("pause %v at %v: the alarm is due after %v of running time", time.Duration(pause), time.Duration(begins), time.Duration(ran))
			}
		}
	}
}

// TestATimerStartsAgainAfterAPause reads timers late, as after a pause of the process.
func TestATimerStartsAgainAfterAPause(t *testing.T) {
	for _, c := range []struct {
		timeout, late time.Duration
		paused        bool
	}{
		{time.Second, 0, false},
		{time.Second, 250 * time.Millisecond, false},
		{time.Second, 251 * time.Millisecond, true},
		{0, 100 * time.Millisecond, false}, // the drain timeout may be 0
		{10 * time.Millisecond, time.Hour, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			timer := patientTimer{timeout: c.timeout}
			timer.start()
			<-timer.fired
			time.Sleep(c.late)
			if over := timer.isOver(); over == c.paused {
				t.Errorf("timeout %v, %v late: the timer is over: %v", c.timeout, c.late, over)
			}
			if !c.paused {
				return
			}
			began := time.Now()
			if <-timer.fired; time.Since(began) != c.timeout || !timer.isOver() {
				t.Errorf("timeout %v, %v late: the timer does not start again", c.timeout, c.late)
			}
		})
	}
}
