//go:build topobug

package store_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/topogen/topogen/runtime/internal/bug"
)

// TestBugsAreCaught runs the simulated disk without a deliberate bug, which must pass, and
// then with each bug, which must fail.
func TestBugsAreCaught(t *testing.T) {
	if os.Getenv(bug.Variable) != "" {
		t.Skip("this process was started by this test")
	}
	for _, b := range append([]bug.Bug{"none"}, bug.InStore...) {
		t.Run(string(b), func(t *testing.T) {
			test := exec.Command(os.Args[0], "-test.failfast", "-test.run", "TestPowerFailure|TestFailedSyncs|TestLyingDisk|TestEachWriteIsLost")
			test.Env = append(os.Environ(), "TOPOGEN_CRASHES=600", bug.Variable+"="+string(b))
			out, err := test.CombinedOutput()
			if caught := err != nil; caught != (b != "none") {
				t.Errorf("caught: %v\n%s", caught, out)
			}
			t.Logf("%s", out)
		})
	}
}
