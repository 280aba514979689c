package suite

import (
	"fmt"
	"time"

	"github.com/topogen/topogen/bench/measure"
	"github.com/topogen/topogen/bench/peers"
)

const (
	requestsEach  = 10_000_000 // per goroutine
	requestRounds = 3          // at most: a round takes ten seconds
)

// requests is a workload in which each goroutine pushes ten million messages and as many
// goroutines pop them. It measures the time that this takes and the processor time.
func requests(e Effort) (Section, error) {
	s := Section{
		Title: "Ten million pushes and pops per goroutine",
		Note: "Each goroutine pushes or pops ten million messages. In a published measurement of this workload, C++ reached 3.3 million requests per second with a lock-free queue and 3.6 with a mutex on two threads of four CPUs, and 4.0 and 2.3 on four threads. " +
			"Pops that find nothing are not counted here. All values are medians.",
		Columns: []string{"", "first row against this row", "real s", "user s", "system s", "million requests per second"},
	}
	crowd := func(name string, lane func() peers.Lane) func(sides int) measure.Contender {
		return func(sides int) measure.Contender {
			return sure(name, func(n int) { peers.Crowd(lane(), sides, n) })
		}
	}
	shared := []func(int) measure.Contender{
		crowd(aChannel, peers.ChannelLane), crowd(aMutex, peers.MutexLane), crowd(lockFree, peers.LockFreeLane),
		crowd("queue.Ring", peers.RingLane), crowd(xsyncMPMC, peers.XsyncMPMC), crowd(nodeList, peers.NodeListLane),
	}
	for _, sides := range []int{1, 2} {
		contenders := []measure.Contender{sure(edgeBatch, func(n int) { peers.Across(peers.EdgeLane(publishAt), n) })}
		if sides == 2 {
			contenders[0] = sure(edgePairs, func(n int) { peers.EdgesTwoByTwo(publishAt, n) })
		}
		for _, c := range shared {
			contenders = append(contenders, c(sides))
		}
		spent, err := spend(contenders, min(e.Rounds, requestRounds), sides*requestsEach)
		if err != nil {
			return s, err
		}
		who := fmt.Sprintf("%d + %d", sides, sides)
		for i, c := range contenders {
			median := func(of func(spending) float64) float64 {
				v := make([]float64, len(spent[i]))
				for r, x := range spent[i] {
					v[r] = of(x)
				}
				return measure.Median(v)
			}
			ratios := make([]float64, len(spent[i]))
			for r, x := range spent[i] {
				ratios[r] = x.real.Seconds() / spent[0][r].real.Seconds()
			}
			times := measure.Median(ratios)
			real := median(func(x spending) float64 { return x.real.Seconds() })
			s.Rows = append(s.Rows, []string{
				who + ": " + c.Name, fmt.Sprintf("%.1f× as fast", times), fmt.Sprintf("%.2f", real),
				fmt.Sprintf("%.2f", median(func(x spending) float64 { return x.user.Seconds() })),
				fmt.Sprintf("%.2f", median(func(x spending) float64 { return x.system.Seconds() })),
				fmt.Sprintf("%.1f", float64(2*sides*requestsEach)/real/1e6),
			})
			if c.Name == aChannel {
				s.Claims = append(s.Claims, atLeast("ten million pushes and pops each, "+who+" goroutines: edges against a channel", 5, times))
			}
		}
	}
	return s, nil
}

// spending is the cost of a run.
type spending struct{ real, user, system time.Duration }

// spend runs the contenders in turns, like measure.Contest, and returns the cost of each
// in each round.
func spend(contenders []measure.Contender, rounds, n int) ([][]spending, error) {
	spent := make([][]spending, len(contenders))
	for range rounds {
		for i, c := range contenders {
			user, system := measure.UserSystem()
			began := time.Now()
			if err := c.Run(n); err != nil {
				return nil, fmt.Errorf("%s: %w", c.Name, err)
			}
			x := spending{real: time.Since(began)}
			x.user, x.system = measure.UserSystem()
			x.user, x.system = x.user-user, x.system-system
			spent[i] = append(spent[i], x)
		}
	}
	return spent, nil
}
