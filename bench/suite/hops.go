package suite

import (
	"fmt"

	"github.com/topogen/topogen/bench/measure"
	"github.com/topogen/topogen/bench/peers"
	"github.com/topogen/topogen/bench/topologies/hop"
	"github.com/topogen/topogen/runtime/pool"
)

// hopLatency measures single hops between two workers. With many messages in flight, a
// hop mostly waits behind others.
func hopLatency(e Effort) (Section, error) {
	s := Section{
		Title:   "How long a hop between two workers takes",
		Note:    "Time from the send to the handler call. Only some hops are timed, and each time includes two clock readings. Each figure is the median over the rounds.",
		Columns: []string{"", "median µs", "99th percentile µs", "99.9th percentile µs"},
	}
	for _, of := range []struct{ balls, hops, every int }{{1, 60_000, 4}, {64, 600_000, 16}, {4096, 1_200_000, 32}} {
		contenders := []struct {
			name string
			run  func() ([]float64, error)
		}{
			{ours, func() ([]float64, error) {
				return hop.Timed(of.hops, of.balls, of.every, pool.Workers(2), pool.Rebalance(0))
			}},
			{channelsHeld, func() ([]float64, error) { return peers.ChannelHops(of.hops, of.balls, of.every, true), nil }},
			{channelsFree, func() ([]float64, error) { return peers.ChannelHops(of.hops, of.balls, of.every, false), nil }},
		}
		figures := make([][3][]float64, len(contenders)) // by contender, percentile and round
		for range e.Rounds {
			for i, c := range contenders {
				took, err := c.run()
				if err != nil {
					return s, fmt.Errorf("%s: %w", c.name, err)
				}
				for k, p := range []float64{0.5, 0.99, 0.999} {
					figures[i][k] = append(figures[i][k], measure.Percentile(took, p))
				}
			}
		}
		for i, c := range contenders {
			row := []string{fmt.Sprintf("%d in flight: %s", of.balls, c.name)}
			for _, v := range figures[i] {
				row = append(row, fmt.Sprintf("%.2f", measure.Median(v)/1e3))
			}
			s.Rows = append(s.Rows, row)
		}
	}
	return s, nil
}
