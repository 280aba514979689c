//go:build topobug

package oracle

import (
	"os"
	"os/exec"
	"testing"

	"github.com/topogen/topogen/runtime/internal/bug"
)

// TestBugsAreCaught runs the differential test once without a deliberate bug of the core,
// which must succeed, and once with each bug, which must fail.
func TestBugsAreCaught(t *testing.T) {
	if os.Getenv(bug.Variable) != "" {
		t.Skip("this process was started by this test")
	}
	for _, b := range append([]bug.Bug{"none"}, bug.InDurableCore...) {
		t.Run(string(b), func(t *testing.T) {
			test := exec.Command(os.Args[0], "-test.run=^TestDifferential$", "-test.timeout=5m")
			test.Env = append(os.Environ(), "TOPOGEN_SEEDS=", "TOPOGEN_SEED=", bug.Variable+"="+string(b))
			out, err := test.CombinedOutput()
			if caught := err != nil; caught != (b != "none") {
				t.Errorf("caught: %v\n%s", caught, out)
			}
		})
	}
}
