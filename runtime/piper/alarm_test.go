package piper

import (
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/internal/patient"
)

// TestAnAlarmIgnoresPauses runs an alarm whose checks are on time, except for one pause of the
// process. The time while the process runs must add up to the full wait when the alarm is due. It
// may differ by one interval of the checks, because a check cannot detect a shorter pause.
func TestAnAlarmIgnoresPauses(t *testing.T) {
	const wait = int64(time.Second)
	for _, pause := range []int64{0, wait / 2, wait, 3 * wait, int64(time.Hour)} {
		for begins := int64(0); begins < wait; begins += wait / 50 {
			a := alarm{at: wait, step: wait / patient.Checks, check: wait / patient.Checks}
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
			if ran := clock - pause; ran < wait-wait/patient.Checks || pause == 0 && ran != wait || ran > wait+wait/patient.Checks {
				t.Errorf("pause %v at %v: the alarm is due after %v of running time", time.Duration(pause), time.Duration(begins), time.Duration(ran))
			}
		}
	}
}
