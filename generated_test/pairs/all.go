package pairs

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/topogen/topogen/internal/test/speed"
)

var (
	failures = []Failure{NoFailure, ReturnErr, Joined, Panic, Goexit, Hang, Deaf, Exit, Kill, Stop, Pause}
	places   = []string{"feed", "work", "sink"}
	methods  = []string{"", "Init", "Finish", "Close"} // "" are the handlers, Ping and Serve
	ways     = []Run{{}, {Stop: true}, {Stepped: true}, {Stepped: true, Stop: true}}
)

// All runs a case with each failure in each place, in four ways: on workers and under the Stepper,
// to the end of the topology and with a stop. Except in a long run, it selects some of these runs.
func All(t *testing.T, c Case) {
	if c.NewNode != nil {
		allOnNodes(t, c)
		return
	}
	for m, method := range methods {
		for i, f := range failures {
			for k, place := range places {
				for n, r := range ways {
					r.Failure, r.Place, r.Method, r.Seed = f, place, method, c.Seed*100+uint64(i*10+n)
					if c.canRun(r) && c.isChosen(t, r, c.Index+m+i, k, n) {
						t.Run(fmt.Sprintf("%s-%s%s-%d", f, place, method, n), func(t *testing.T) { Check(t, c, r) })
					}
				}
			}
		}
	}
	c.allOfMachine(t)
}

// isChosen selects the runs for which the test has time. All topologies together have each failure,
// place and way.
func (c Case) isChosen(t *testing.T, r Run, turn, place, way int) bool {
	long := speed.Pick(t, false, false, true)
	slow := c.HasProcesses() || c.Recovered != nil // starting a process or opening a log takes longer than most runs
	switch {
	case long && !slow:
		return true
	case turn%len(ways) != way,
		r.Method != "" && turn/len(ways)%len(places) != place:
		return false
	case !long && c.Member != nil && !c.isOneIn(3, r), // a group takes longer than a log
		!long && r.Method != "" && r.Failure.IsHang() && !c.isOneIn(2, r):
		return false
	case len(c.Durable) > 0 && !long && (c.Index/3+turn+place)%3 != 0: // it makes two runs
		return false
	case slow && !long && turn/len(ways)%6 != place:
		return false
	case c.HasProcesses():
		return c.Options[r.Place] == "process" || turn%len(places) == place
	}
	return true
}

// isOneIn selects one of n runs.
func (c Case) isOneIn(n int, r Run) bool {
	return rand.New(rand.NewPCG(r.Seed, uint64(c.Index))).IntN(n) == 0
}

// canRun reports whether the test makes a run with the case.
func (c Case) canRun(r Run) bool {
	isolated := c.Options[r.Place] == "process"
	switch {
	case r.Failure == NoFailure && (r.Place != "work" || r.Method != ""):
		return false // without a failure, the place and the method make no difference
	case r.Place == "feed" && c.Options["feed"] == "outside":
		return false // an external processor has no methods
	case r.Stepped && c.asksDurable():
		return false // under a Stepper, only a caller from outside can wait for a reply
	case r.Failure == Goexit && r.Stepped && !isolated:
		return false // it would end the goroutine of the test
	case r.Failure.IsOfProcess() && !isolated && !c.canEndProgram(r):
		return false // it would end the test
	case r.Failure == Hang && r.Method == "Close":
		return false // Close has no context
	case r.Failure.IsHang() && r.Stepped && c.runsDurable(r.Place):
		return false // no health timeout ends a durable function
	case r.Failure.IsHang() && r.Stepped && !isolated && (r.Method == "Init" || r.Method == "Close"):
		return false // the Stepper simulates only hangs of handlers and of Finish
	case r.Failure.IsHang() && (r.Stepped || c.HasProcesses()) && (r.Method == "Init" || !c.endsHangs(r.Place)):
		return false // no timeout ends the call, or only one of many seconds
	}
	return true
}

// endsHangs reports whether a health timeout ends the calls of a processor.
func (c Case) endsHangs(place string) bool { return place == "work" && c.Options["health"] != "none" }

// canEndProgram reports whether a run can end the whole program: then the messages along durable
// edges must continue. Under a Stepper the store crashes, and place and method make no difference. With
// revert, the state depends on a last message that the log may have and the ledger not.
func (c Case) canEndProgram(r Run) bool {
	return len(c.Durable) > 0 && (c.Recovered == nil || c.Options["revert"] == "no") && !c.HasProcesses() && !r.Stop && (!r.Stepped || r.Failure == Kill && r.Place == "work" && r.Method == "")
}

var faults = []NodeFault{NoFault, StopAll, Leave, Cut, Crash}

// allOnNodes runs a case on several nodes with each failure in each place, and with each fault of a
// node. Except in a long run, it selects some of these runs.
func allOnNodes(t *testing.T, c Case) {
	long := speed.Pick(t, false, false, true)
	for m, method := range methods {
		for i, f := range failures {
			for k, place := range places {
				for n, fault := range faults {
					r := Run{Failure: f, Place: place, Method: method, Seed: c.Seed*100 + uint64(i*10+n), Fault: fault}
					if c.canRun(r) && !f.IsHang() && (long || c.isChosenOnNodes(m, i, k, n)) {
						t.Run(fmt.Sprintf("%s-%s%s-%s", f, place, method, fault), func(t *testing.T) { CheckNodes(t, c, r) })
					}
				}
			}
		}
	}
}

// isChosenOnNodes selects a run with each failure of a handler, and one with a failure of each other
// method. All topologies together have each failure, place and fault.
func (c Case) isChosenOnNodes(method, failure, place, fault int) bool {
	turn := c.Index + method + failure
	return turn%len(faults) == fault && (failure == 0 || (turn/len(faults)+method)%len(places) == place) &&
		(method == 0 || failures[failure] == [...]Failure{ReturnErr, Joined, Panic, Goexit}[(c.Index+method)%4] && c.Recovered == nil)
}
