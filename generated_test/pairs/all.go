package pairs

import (
	"fmt"
	"testing"

	"github.com/topogen/topogen/internal/test/speed"
)

var (
	failures = []Failure{NoFailure, ReturnErr, Joined, Panic, Goexit, Hang, Deaf, Exit, Kill, Stop, Pause}
	places   = []string{"feed", "work", "sink"}
	methods  = []string{"", "Init", "Finish", "Close"} // "" are the handlers, Ping and Serve
	ways     = []Run{{}, {Stop: true}, {Stepped: true}, {Stepped: true, Stop: true}}
)

// All runs a case with each failure in each place: on workers and under the Stepper, to its end and
// with a stop. A run that takes less time has one of these four ways for each failure and place.
func All(t *testing.T, c Case) {
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
}

// isChosen selects the runs that the test has time for. The topologies together have all of them.
func (c Case) isChosen(t *testing.T, r Run, turn, place, way int) bool {
	long := speed.Pick(t, false, false, true)
	slow := c.HasProcesses() || c.Recovered != nil // a start of a process or of a log takes longer than most runs
	switch {
	case long && !slow:
		return true
	case turn%len(ways) != way,
		r.Method != "" && turn/len(ways)%len(places) != place:
		return false
	case slow && !long && turn/len(ways)%4 != place:
		return false
	case c.HasProcesses():
		return c.Options[r.Place] == "process" || turn%len(places) == place
	}
	return true
}

// canRun reports whether the case can have a run.
func (c Case) canRun(r Run) bool {
	isolated := c.Options[r.Place] == "process"
	switch {
	case r.Failure == Joined && r.Place == "feed":
		return false // known: an error that is joined to topo.Done counts as a clean end
	case r.Failure != NoFailure && c.stopsForever(r.Place):
		return false // known: a member with restart: never is not given up when its group restarts
	case r.Failure == NoFailure && (r.Place != "work" || r.Method != ""):
		return false // the same as with these
	case r.Place == "feed" && c.Options["feed"] == "outside":
		return false // it has no handler
	case r.Failure == Goexit && r.Stepped && !isolated:
		return false // it would end the goroutine of the test
	case r.Failure.IsOfProcess() && !isolated:
		return false // it would end the test
	case r.Failure.IsHang() && r.Method != "":
		return false // no health timeout ends these
	case r.Failure.IsHang() && r.Stepped && c.HasProcesses():
		return false // known: a Stepper waits for a process for ever, in spite of the health timeout
	case r.Failure.IsHang() && (r.Stepped || c.HasProcesses()) && !c.endsHangs(r.Place):
		return false // no time ends the call
	}
	return true
}

// endsHangs reports whether a health timeout ends the calls of a processor.
func (c Case) endsHangs(place string) bool { return place == "work" && c.Options["health"] != "none" }

// stopsForever reports whether a failure in a place stops a healthy instance that is not restarted.
func (c Case) stopsForever(place string) bool {
	never := map[string]bool{"work": c.Options["restart"] == "never", "sink": c.Options["sink"] == "never"}
	switch c.Options["group"] {
	case "one-for-all":
		return never["work"] || never["sink"]
	case "rest-for-one": // sink comes before work
		return never["work"]
	}
	return false
}
