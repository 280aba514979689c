package patient

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestACountdownIgnoresPauses checks a countdown on time, except for one pause of the process. The
// time while the process runs must add up to the timeout. It may differ by one interval of the
// checks, because a check cannot detect a shorter pause.
func TestACountdownIgnoresPauses(t *testing.T) {
	const timeout, step = time.Second, time.Second / Checks
	for _, pause := range []time.Duration{0, timeout / 2, timeout, 3 * timeout, time.Hour} {
		for begins := time.Duration(0); begins < timeout; begins += timeout / 50 {
			var c Countdown
			now := c.Start(0, timeout)
			for begun, over := false, false; ; {
				if !begun && now > begins { // the pause was before this check
					begun = true
					now = max(now, begins+pause)
				}
				before := now
				if over, now = c.Check(now); over {
					now = before
					break
				}
				if now <= before {
					t.Fatalf("pause %v at %v: the check after %v is at %v", pause, begins, before, now)
				}
			}
			if ran := now - pause; ran < timeout-step || pause == 0 && ran != timeout || ran > timeout+step {
				t.Errorf("pause %v at %v: the timeout has passed after %v of running time", pause, begins, ran)
			}
		}
	}
}

// TestACountdownEnds checks a countdown always late, as on a host that is too busy. Short delays
// do not make the timeout longer.
func TestACountdownEnds(t *testing.T) {
	for _, timeout := range []time.Duration{0, 1, time.Millisecond, 9 * time.Millisecond, time.Second + 1, time.Hour} {
		for _, late := range []time.Duration{0, time.Microsecond, timeout / Checks, timeout, 10 * timeout} {
			var c Countdown
			next, now, checks, over := c.Start(0, timeout), time.Duration(0), 0, false
			for ; !over && checks < 2*Checks; checks++ {
				now = next + late
				over, next = c.Check(now)
			}
			if !over || late <= timeout/Checks && now > timeout+late {
				t.Errorf("timeout %v, each check %v late: over is %v after %d checks and %v", timeout, late, over, checks, now)
			}
		}
	}
}

func TestATimerFiresOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, fired := time.Now(), time.Duration(-1)
		timer := AfterFunc(10*time.Second, func() { fired = time.Since(began) })
		time.Sleep(4 * time.Second)
		if left := timer.Left(); left != 6*time.Second {
			t.Errorf("after 4s, %v are left of 10s", left)
		}
		time.Sleep(time.Minute)
		synctest.Wait() // for the race detector: fired was written in another goroutine
		if fired != 10*time.Second || timer.Stop() || timer.Left() != 0 {
			t.Errorf("fired after %v, %v are left", fired, timer.Left())
		}
	})
}

func TestATimerThatIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		timer := AfterFunc(10*time.Second, func() { t.Error("the timer was stopped") })
		time.Sleep(9 * time.Second)
		if !timer.Stop() || timer.Stop() {
			t.Error("only the first Stop stops the timer")
		}
		time.Sleep(time.Minute)
	})
}

func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		done, began := make(chan struct{}), time.Now()
		if Wait(time.Second, done) || time.Since(began) != time.Second {
			t.Errorf("waited for %v, want 1s", time.Since(began))
		}
		time.AfterFunc(time.Second, func() { close(done) })
		if !Wait(time.Minute, done) || time.Since(began) != 2*time.Second {
			t.Errorf("waited until %v, want 2s", time.Since(began))
		}
	})
}
