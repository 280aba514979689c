//go:build topobug

package piper_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/topogen/topogen/runtime/internal/bug"
)

// TestBugsAreCaught runs the tests of this package once without a deliberate
// bug, which must succeed, and once with each, which must fail.
func TestBugsAreCaught(t *testing.T) {
	if os.Getenv(bug.Variable) != "" {
		t.Skip("this process was started by this test")
	}
	for _, b := range append([]bug.Bug{"none"}, bug.All...) {
		t.Run(string(b), func(t *testing.T) {
			if b != "none" {
				t.Parallel() // some bugs hang until the timeout
			}
			test := exec.Command(os.Args[0], "-test.failfast", "-test.timeout=20s")
			test.Env = append(os.Environ(), "CI=", bug.Variable+"="+string(b))
			out, err := test.CombinedOutput()
			if caught := err != nil; caught != (b != "none") {
				t.Errorf("caught: %v\n%s", caught, out)
			}
		})
	}
}
