package pairs

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/topogen/topogen/runtime/pool"
)

// programVariable is set in a program that a failure ends. It is the folder of the store.
const programVariable = "PAIRS_PROGRAM"

// endsProgram reports whether a failure ends or stops the whole program, and not the process of one
// instance. Then another program must continue with the store. Under a Stepper the store crashes.
func (r Run) endsProgram(c Case) bool {
	return r.Failure.IsOfProcess() && c.Options[r.Place] != "process"
}

// runProgram makes the run of the test t in another program, and waits for its end.
func runProgram(t *testing.T, store string) {
	t.Helper()
	var parts []string
	for part := range strings.SplitSeq(t.Name(), "/") {
		parts = append(parts, "^"+regexp.QuoteMeta(part)+"$")
	}
	cmd := exec.Command(os.Args[0], "-test.run="+strings.Join(parts, "/"), "-test.timeout=1m")
	cmd.Env = append(os.Environ(), programVariable+"="+store)
	if out, err := cmd.CombinedOutput(); err != nil {
		if plan.Failure == Pause || strings.Contains(string(out), "--- FAIL") || strings.Contains(string(out), "panic:") {
			t.Errorf("%v\n%s", err, out)
		}
	}
}

// runInProgram makes a run in the program that it ends. It reports whether this is such a program.
func (c Case) runInProgram(t *testing.T, r Run) bool {
	store := os.Getenv(programVariable)
	if store == "" {
		return false
	}
	synctest.Test(t, func(t *testing.T) {
		openInChild()
		if end := c.once(t, r, pool.DurableStore(store)); end.err != nil && plan.Failure == Pause {
			t.Error(end.err)
		}
	})
	return true
}
