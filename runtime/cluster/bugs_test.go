//go:build topobug

package cluster

import (
	"os"
	"os/exec"
	"testing"

	"github.com/topogen/topogen/runtime/internal/bug"
)

// TestBugsAreCaught runs the simulation once without a deliberate bug, which must pass,
// and once with each bug, which must fail.
func TestBugsAreCaught(t *testing.T) {
	if os.Getenv(bug.Variable) != "" {
		t.Skip("this process was started by this test")
	}
	for _, b := range append([]bug.Bug{"none"}, bug.InCluster...) {
		t.Run(string(b), func(t *testing.T) {
			seeds := "4000" // ends with the first seeds that fail
			if b == "none" {
				seeds = "300"
			}
			test := exec.Command(os.Args[0], "-test.run=TestRandomClusters", "-test.timeout=120s")
			test.Env = append(os.Environ(), "CI=", "TOPOGEN_SEEDS="+seeds, "TOPOGEN_SEED=", bug.Variable+"="+string(b))
			out, err := test.CombinedOutput()
			if caught := err != nil; caught != (b != "none") {
				t.Errorf("caught: %v\n%s", caught, out)
			}
		})
	}
}
