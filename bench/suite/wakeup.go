package suite

import (
	"fmt"
	"time"

	"github.com/topogen/topogen/bench/measure"
	"github.com/topogen/topogen/bench/topologies/door"
)

const (
	wakeups     = 200                    // per round
	wakeupPause = 500 * time.Microsecond // long enough for all workers to fall asleep
	idleFor     = time.Second
)

// Latency wakes a sleeping topology or goroutine again and again, and returns the times
// until its handler ran, in nanoseconds.
type Latency func(times int) ([]float64, error)

// TopologyLatency wakes a topology through an external processor.
func TopologyLatency(times int) ([]float64, error) {
	began := time.Now()
	took := make(chan float64, 1)
	send, stop, err := door.Open(func(m door.Message) { took <- float64(time.Since(began)) - float64(m.N) })
	if err != nil {
		return nil, err
	}
	v := make([]float64, 0, times)
	for range times {
		time.Sleep(wakeupPause)
		if err := send(door.Message{N: int64(time.Since(began))}); err != nil {
			return nil, err
		}
		v = append(v, <-took)
	}
	return v, stop()
}

// ChannelLatency wakes a goroutine that receives from a channel.
func ChannelLatency(times int) ([]float64, error) {
	began := time.Now()
	in, took := make(chan int64, 1), make(chan float64, 1)
	go func() {
		for at := range in {
			took <- float64(time.Since(began)) - float64(at)
		}
	}()
	defer close(in)
	v := make([]float64, 0, times)
	for range times {
		time.Sleep(wakeupPause)
		in <- int64(time.Since(began))
		v = append(v, <-took)
	}
	return v, nil
}

func wakeup(e Effort) (Section, error) {
	s := Section{
		Title:   "Wake-up",
		Note:    fmt.Sprintf("Time from a send to the handler call while all workers sleep: %d sends per round, %v apart.", wakeups, wakeupPause),
		Columns: []string{"", "median µs", "99th percentile µs"},
	}
	var p50, p99 [2][]float64
	names := []string{ours, aChannel}
	for range e.Rounds {
		for i, latency := range []Latency{TopologyLatency, ChannelLatency} {
			v, err := latency(wakeups)
			if err != nil {
				return s, err
			}
			p50[i], p99[i] = append(p50[i], measure.Median(v)), append(p99[i], measure.Percentile(v, 0.99))
		}
	}
	ratios := make([]float64, e.Rounds)
	for i := range ratios {
		ratios[i] = p50[0][i] / p50[1][i]
	}
	for i, name := range names {
		s.Rows = append(s.Rows, []string{name, fmt.Sprintf("%.1f", measure.Median(p50[i])/1e3), fmt.Sprintf("%.1f", measure.Median(p99[i])/1e3)})
	}
	s.Claims = []Claim{atMost("wake-up, median, against a channel", 3, measure.Median(ratios))}
	return s, nil
}

// IdleShare is the share of one CPU that a running topology without messages uses.
func IdleShare() (float64, error) {
	send, stop, err := door.Open(nil)
	if err != nil {
		return 0, err
	}
	if err := send(door.Message{}); err != nil {
		return 0, err
	}
	time.Sleep(idleFor / 4) // until all workers sleep
	before := measure.CPU()
	time.Sleep(idleFor)
	return float64(measure.CPU()-before) / float64(idleFor), stop()
}

// idleShareMax is a goal.
const idleShareMax = 0.005

func idleCPU(e Effort) (Section, error) {
	s := Section{
		Title:   "Idle",
		Note:    "CPU time of a process whose topology waits for messages, over one second.",
		Columns: []string{"", "share of one CPU"},
	}
	rounds := min(e.Rounds, 3) // the figure hardly varies, and each round takes more than a second
	var with, without []float64
	for range rounds {
		share, err := IdleShare()
		if err != nil {
			return s, err
		}
		with = append(with, share)
		before := measure.CPU()
		time.Sleep(idleFor)
		without = append(without, float64(measure.CPU()-before)/float64(idleFor))
	}
	share := measure.Median(with)
	s.Rows = [][]string{{"a topology that waits", percent(share)}, {"no topology", percent(measure.Median(without))}}
	s.Claims = []Claim{{"idle CPU", "< 0.5 %", percent(share), share < idleShareMax}}
	return s, nil
}

func percent(share float64) string { return fmt.Sprintf("%.2f %%", 100*share) }
