//go:build topobug

package raft_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/topogen/topogen/runtime/internal/bug"
)

// TestBugsAreCaught runs the simulation once without a deliberate bug, which must
// succeed, and once with each, which must fail within 2,000 seeds.
func TestBugsAreCaught(t *testing.T) {
	if os.Getenv(bug.Variable) != "" {
		t.Skip("this is one of those runs")
	}
	for _, b := range append([]bug.Bug{"none", bug.SessionsNotInSnapshot}, bug.InRaft...) {
		t.Run(string(b), func(t *testing.T) {
			test := exec.Command(os.Args[0], "-test.run=TestRandomFaults", "-test.timeout=10m")
			n := "2000"
			if b == "none" {
				n = "20"
			}
			test.Env = append(os.Environ(), bug.Variable+"="+string(b), "TOPOGEN_SEEDS="+n)
			out, err := test.CombinedOutput()
			if caught := err != nil; caught != (b != "none") {
				t.Errorf("caught: %v\n%s", caught, out)
			}
			if err != nil {
				t.Logf("%.160s", out)
			}
		})
	}
}
