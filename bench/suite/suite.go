// Package suite defines the measurements: contests of topologies with their peers, and
// figures of time and memory. The benchmarks run its parts one by one. The table runs all
// of them, and reports which goals are reached.
package suite

import (
	"fmt"
	"time"

	"github.com/topogen/topogen/bench/measure"
)

// Effort says how long a measurement may take.
type Effort struct {
	Rounds int
	Run    time.Duration // of one contender in one round
}

// Claim is a goal and the result.
type Claim struct {
	What    string
	Goal    string
	Reached string
	Holds   bool
}

// Section is one table.
type Section struct {
	Title   string
	Note    string // describes the measurement in a sentence or two
	Columns []string
	Rows    [][]string
	Claims  []Claim
}

// Experiment produces a section.
type Experiment struct {
	Name    string // in flags
	Measure func(Effort) (Section, error)
}

// Experiments returns all experiments in the order of the page. Build comes first,
// because the memory of a child process is counted from that of its parent on, which
// grows.
func Experiments() []Experiment {
	list := []Experiment{{"build", build}, {"compile", compile}}
	for _, c := range Contests() {
		list = append(list, Experiment{c.Name, c.measure})
	}
	return append(list,
		Experiment{"hop-latency", hopLatency},
		Experiment{"requests", requests},
		Experiment{"wakeup", wakeup},
		Experiment{"idle-cpu", idleCPU},
		Experiment{"sleepers", asleep},
		Experiment{"fairness", fairness},
		Experiment{"idle-memory", idleMemory},
		Experiment{"stall", stalled},
		Experiment{"size", atSize},
	)
}

// atLeast makes a claim that a ratio is at least the goal.
func atLeast(what string, goal, reached float64) Claim {
	digits := 1
	if goal < 2 { // with a low goal, hundredths matter
		digits = 2
	}
	return Claim{what, fmt.Sprintf("≥ %g×", goal), fmt.Sprintf("%.*f×", digits, reached), reached >= goal}
}

// atMost makes a claim that a ratio is at most the goal.
func atMost(what string, goal, reached float64) Claim {
	return Claim{what, fmt.Sprintf("≤ %g×", goal), fmt.Sprintf("%.2f×", reached), reached <= goal}
}

// timesClaim compares the speed of the first contender with that of a peer.
func timesClaim(what string, goal float64, results []measure.Result, peer string) Claim {
	return atLeast(what, goal, results[0].Times(named(results, peer)))
}

// longClaim compares the time of the first contender with that of a peer.
func longClaim(what string, goal float64, results []measure.Result, peer string) Claim {
	return atMost(what, goal, named(results, peer).Times(&results[0]))
}

func named(results []measure.Result, peer string) *measure.Result {
	for i := range results {
		if results[i].Name == peer {
			return &results[i]
		}
	}
	panic("suite: no contender " + peer)
}
