//go:build topobug

package cluster

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/topogen/topogen/runtime/internal/bug"
)

// seedsOfBug is the number of seeds within which the simulation catches a bug: several
// times the seed at which it did when the bug was added, because each change of the
// simulation gives other runs. 0: a test with one given topology catches it.
var seedsOfBug = map[bug.Bug]int{
	bug.ConfirmedEarly:     100,
	bug.SecondRoundOmitted: 200,
	bug.TurnsNotCompared:   6000,
	bug.BusyIgnored:        500,
	bug.StatusLost:         2000,
	bug.SettledTwice:       100,
	bug.SettledShort:       200,
	bug.ConfirmLost:        3000,
	bug.RepliesLate:        3000,
	bug.DrainingSilent:     6000,
	bug.RoomUnreported:     100,
	bug.PassedStuck:        500,
	bug.FarewellShort:      1000,
	bug.ResumeForgotten:    1000,
	bug.ResentReversed:     100,
	bug.DropsNotCounted:    200,
	bug.ExpiredSilently:    200,
	bug.ExpiryUnscheduled:  0,
	bug.DoubtsIgnored:      3000,
	bug.OrderAcrossIgnored: 200,
	bug.CastSettledByOne:   2000,
	bug.CastShared:         500,
	bug.ReturnForgotten:    1000,
	// bugs of package session, which is a part of the simulation
	bug.FrameAgain:    100,
	bug.GapSkipped:    200,
	bug.LastFrameLost: 100,
}

// TestBugsAreCaught runs the simulation once without a deliberate bug, which must pass,
// and once with each bug, which must fail.
func TestBugsAreCaught(t *testing.T) {
	if os.Getenv(bug.Variable) != "" {
		t.Skip("this process was started by this test")
	}
	list := append([]bug.Bug{"none"}, bug.InCluster...)
	for _, b := range append(list, bug.FrameAgain, bug.GapSkipped, bug.LastFrameLost) {
		t.Run(string(b), func(t *testing.T) {
			seeds, ok := seedsOfBug[b]
			if b == "none" {
				seeds, ok = 300, true
			}
			if !ok {
				t.Fatal("the number of seeds is missing")
			}
			run := "TestRandomClusters"
			if seeds == 0 {
				run = "TestCallsToANodeThatNeverReturns"
			}
			test := exec.Command(os.Args[0], "-test.run=^"+run+"$", "-test.timeout=120s")
			test.Env = append(os.Environ(), "CI=", "TOPOGEN_SEEDS="+strconv.Itoa(seeds), "TOPOGEN_SEED=", bug.Variable+"="+string(b))
			out, err := test.CombinedOutput()
			if caught := err != nil; caught != (b != "none") {
				t.Errorf("caught in %d seeds: %v\n%s", seeds, caught, out)
			}
			if first, ok := firstSeed(out); ok {
				t.Logf("seed %s of %d", first, seeds)
			} else if seeds > 0 && b != "none" && !t.Failed() {
				t.Errorf("the test has failed for another reason:\n%s", out)
			}
		})
	}
}

// firstSeed returns the first seed that has failed.
func firstSeed(out []byte) (seed string, ok bool) {
	_, after, ok := strings.Cut(string(out), ": seed ")
	if seed, _, _ = strings.Cut(after, ":"); !ok {
		return "", false
	}
	return seed, true
}
