package piper_test

import (
	_ "embed"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/topo"
)

const (
	makespanMax = 1.15 // the longest permitted run, as a multiple of the lower bound
	// partOfShare divides the share of a worker: no instance has more work. Only one worker at a time runs an
	// instance, and workers run their instances in turn. So a heavier instance ends late, as a thread would.
	partOfShare = 8
)

// parseTimes has the microseconds that go/parser took for each file of the standard library of Go 1.26, one
// package in a line.
//
//go:embed testdata/parse_times.txt
var parseTimes string

// loads are the costs of messages in microseconds, by instance.
type loads [][]int

// bound is the time below which no scheduler can handle all messages: the mean load of the workers, or that
// of the heaviest instance.
func (l loads) bound(workers int) time.Duration {
	total := 0
	for _, costs := range l {
		for _, c := range costs {
			total += c
		}
	}
	return max(time.Duration(total/workers)*time.Microsecond, l.heaviest())
}

func (l loads) heaviest() time.Duration {
	most := 0
	for _, costs := range l {
		sum := 0
		for _, c := range costs {
			sum += c
		}
		most = max(most, sum)
	}
	return time.Duration(most) * time.Microsecond
}

// run returns how long the workers take if one source sends all messages at once. Time is virtual, and each
// worker has a CPU of its own.
func (l loads) run(t *testing.T, workers int) (took time.Duration) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(workers))
	synctest.Test(t, func(t *testing.T) {
		top := build(t, []proc{
			{ping: func(s *cell) error {
				for i, costs := range l {
					for _, c := range costs {
						if err := s.send(0, i, message{hops: c}); err != nil {
							return err
						}
					}
				}
				return topo.Done
			}},
			{instances: len(l), receive: func(_ *cell, m *message) error {
				time.Sleep(time.Duration(m.hops) * time.Microsecond)
				return nil
			}},
		}, []edge{{from: 0, to: 1, capacity: 1 << 16}}, piper.Workers(workers), piper.Logger(slog.New(slog.DiscardHandler)))
		began := time.Now()
		top.runWhole(t)
		took = time.Since(began)
	})
	return took
}

// drawLoads draws loads of which no instance has more than a given part of a worker's share.
func drawLoads(random *rand.Rand, workers int) (l loads) {
	total, heaviest := 0, 0
	for instances := workers * (1 + random.IntN(32)); len(l) < instances || heaviest*partOfShare > total/workers; {
		scale, sum := 1<<random.IntN(6), 0
		costs := make([]int, 1+random.IntN(32))
		for i := range costs {
			costs[i] = 1 + random.IntN(10*scale)
			sum += costs[i]
		}
		total, heaviest, l = total+sum, max(heaviest, sum), append(l, costs)
	}
	return l
}

// TestMakespan runs random and recorded loads on 2 to 64 workers, and compares the time with the lower bound.
// The scheduler is that of the pool. It does not know the costs in advance.
func TestMakespan(t *testing.T) {
	speed.NoRace(t)
	recorded := loads{}
	for line := range strings.Lines(parseTimes) {
		var costs []int
		for _, field := range strings.Fields(line) {
			c, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			costs = append(costs, c)
		}
		recorded = append(recorded, costs)
	}
	from, to := speed.Seeds(t, 2, 10, 1000)
	for _, workers := range []int{2, 4, 8, 16, 32, 64} {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			packages := slices.Clone(recorded)
			for packages.heaviest()*partOfShare > packages.bound(workers) {
				packages = append(packages, recorded...)
			}
			all := map[string]loads{"recorded": packages}
			for seed := from; seed < to; seed++ {
				all[fmt.Sprint("seed ", seed)] = drawLoads(rand.New(rand.NewPCG(seed, 1)), workers)
			}
			var ratios []float64
			for name, l := range all {
				ratio := float64(l.run(t, workers)) / float64(l.bound(workers))
				ratios = append(ratios, ratio)
				if ratio > makespanMax {
					t.Errorf("%s: %d workers take %.2f times the lower bound", name, workers, ratio)
				}
			}
			slices.Sort(ratios)
			t.Logf("the median is %.2f of the lower bound, the largest %.2f", ratios[len(ratios)/2], ratios[len(ratios)-1])
		})
	}
}
