package suite

import (
	"fmt"
	"runtime"
	"time"

	"github.com/topogen/topogen/bench/measure"
	"github.com/topogen/topogen/bench/peers"
	"github.com/topogen/topogen/bench/topologies/fair"
	"github.com/topogen/topogen/bench/work"
)

const (
	fairFor   = time.Second // in one round
	fairWork  = time.Microsecond
	fairP99Ms = 1 // a goal
)

// FairKinds are the names of the messages and calls whose delay is measured.
var FairKinds = [peers.FairKinds]string{
	peers.FairSend:     "a send from outside, until it is handled",
	peers.FairServe:    "a message from Serve, until it is handled",
	peers.FairBlocking: "a message to a blocking instance",
	peers.FairHealth:   "a health check: a Go timer, and a snapshot",
	peers.FairTimer:    "a timer",
}

// Fairness measures the delays beside busy workers or goroutines.
type Fairness func() (*peers.Delays, error)

// TopologyFairness measures the delays beside busy workers.
func TopologyFairness() (*peers.Delays, error) { return fair.Run(fairFor, work.Steps(fairWork)) }

// ChannelFairness measures the delays beside as many busy goroutines.
func ChannelFairness() (*peers.Delays, error) {
	return peers.ChannelFair(fairFor, runtime.GOMAXPROCS(0), work.Steps(fairWork))
}

func fairness(e Effort) (Section, error) {
	s := Section{
		Title: "Beside busy workers",
		Note: fmt.Sprintf("Delays of everything else while all workers are busy with handlers that take %v, and with channels, while as many goroutines are. Each kind has one message or call in %v, and the blocking handler sleeps for %v. The delay of a timer counts from the time for which it was set. Each round takes one second. The maximum is that of all rounds.",
			fairWork, peers.FairPause, peers.FairBlock),
		Columns: []string{"", "median µs", "99th percentile µs", "maximum µs"},
	}
	contenders := []struct {
		name    string
		measure Fairness
	}{{ours, TopologyFairness}, {channels, ChannelFairness}}
	var figures [2][peers.FairKinds][3][]float64 // by contender, kind, percentile and round
	for range min(e.Rounds, 5) {
		for i, c := range contenders {
			delays, err := c.measure()
			if err != nil {
				return s, fmt.Errorf("%s: %w", c.name, err)
			}
			for kind := range FairKinds {
				for k, p := range []float64{0.5, 0.99, 1} {
					figures[i][kind][k] = append(figures[i][kind][k], measure.Percentile(delays.Of(kind), p)/1e3)
				}
			}
		}
	}
	for kind, what := range FairKinds {
		for i, c := range contenders {
			f := &figures[i][kind]
			row := []string{what + ": " + c.name}
			for _, v := range []float64{measure.Median(f[0]), measure.Median(f[1]), measure.Percentile(f[2], 1)} {
				row = append(row, fmt.Sprintf("%.0f", v))
			}
			s.Rows = append(s.Rows, row)
		}
		ms := measure.Median(figures[0][kind][1]) / 1e3
		s.Claims = append(s.Claims, Claim{
			"beside busy workers, 99th percentile: " + what, fmt.Sprintf("≤ %d ms", fairP99Ms), fmt.Sprintf("%.2f ms", ms), ms <= fairP99Ms,
		})
	}
	return s, nil
}
