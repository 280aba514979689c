package shard

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/topogen/topogen/internal/test/speed"
)

// size of a model.
type size int

const (
	small  size = iota // for all runs
	medium             // for landing
	large              // for a long run
)

// TestAllInterleavings visits all reachable states of a few workers, with all or some
// configurations, including failed decisions.
func TestAllInterleavings(t *testing.T) {
	speed.NoRace(t)
	for _, c := range []struct {
		workers, shards, reshards int
		configs                   func(workers, shards int) [][][]int
		from                      size
	}{
		{1, 2, 3, allConfigs, small},
		{2, 2, 2, allConfigs, small},
		{2, 3, 1, allConfigs, small},
		{2, 4, 2, someConfigs, small},
		{3, 2, 1, allConfigs, small},
		{2, 3, 3, allConfigs, medium},
		{2, 4, 2, allConfigs, medium},
		{3, 2, 2, allConfigs, medium},
		{3, 4, 1, allConfigs, medium},
		{3, 4, 2, someConfigs, medium},
		{3, 3, 3, someConfigs, medium},
		{3, 3, 2, allConfigs, large},
		{3, 2, 3, allConfigs, large},
	} {
		t.Run(fmt.Sprintf("%d-workers-%d-shards-%d-reshards", c.workers, c.shards, c.reshards), func(t *testing.T) {
			if c.from > speed.Pick(t, small, medium, large) {
				t.Skip("too many states for the speed of this run")
			}
			m := newModel(c.workers, c.configs(c.workers, c.shards), uint64(1+c.reshards))
			at := func(s snapshot) *model { m.load(s); return m }
			x := explorer[snapshot]{
				start: m.save(),
				holds: func(s snapshot) error { return at(s).holds() },
				ends:  func(s snapshot) bool { return at(s).ended() },
				successors: func(s snapshot) (list []move[snapshot], err error) {
					for w := range c.workers {
						for choice := range at(s).choices(w) {
							if err := at(s).step(w, choice); err != nil {
								return nil, err
							}
							list = append(list, move[snapshot]{fmt.Sprintf("worker %d %v", w, s.workers[w].doing), m.save()})
						}
					}
					return list, nil
				},
			}
			states, err := x.explore()
			t.Logf("%d states", states)
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestRandomInterleavings takes random steps of models that have too many states to visit
// them all.
func TestRandomInterleavings(t *testing.T) {
	speed.NoRace(t)
	first, end := speed.Seeds(t, 20, 200, 2000)
	for seed := first; seed < end; seed++ {
		random := rand.New(rand.NewPCG(uint64(seed), 0))
		workers, shards := 1+random.IntN(8), random.IntN(33)
		configs := make([][][]int, 12)
		for i := range configs {
			configs[i] = randomConfig(random, workers, shards)
		}
		const reshards = 15
		m := newModel(workers, configs, 1+reshards)
		lazy := random.Perm(workers)[:random.IntN(workers)] // these workers rarely take a step
		for step := 0; !m.ended(); step++ {
			w := random.IntN(workers)
			if len(lazy) > 0 && random.IntN(10) > 0 && lazy[random.IntN(len(lazy))] == w {
				continue
			}
			err := m.step(w, random.IntN(m.choices(w)))
			if err == nil {
				err = m.holds()
			}
			if err == nil && step > 1_000_000 {
				err = fmt.Errorf("the model does not reach its end")
			}
			if err != nil {
				t.Fatalf("seed %d, step %d: %v\n%s", seed, step, err, speed.Repeat(t, seed))
			}
		}
	}
}

// allConfigs returns all ways to divide shards among workers.
func allConfigs(workers, shards int) (list [][][]int) {
	owners := make([]int, shards)
	for {
		config := make([][]int, workers)
		for s, w := range owners {
			config[w] = append(config[w], s)
		}
		list = append(list, config)
		i := 0
		for i < shards && owners[i] == workers-1 {
			owners[i] = 0
			i++
		}
		if i == shards {
			return list
		}
		owners[i]++
	}
}

// someConfigs returns a few very different configurations: all shards on one worker, a
// ring, reverse order.
func someConfigs(workers, shards int) [][][]int {
	all, ring, backwards := make([][]int, workers), make([][]int, workers), make([][]int, workers)
	for s := range shards {
		all[workers-1] = append(all[workers-1], s)
		ring[(s+1)%workers] = append(ring[(s+1)%workers], s)
		w := (shards - 1 - s) % workers
		backwards[w] = append([]int{s}, backwards[w]...)
	}
	return [][][]int{RoundRobin(shards, workers), all, ring, backwards}
}

// randomConfig divides shards among workers in random order. Often a worker gets no
// shards.
func randomConfig(random *rand.Rand, workers, shards int) [][]int {
	config := make([][]int, workers)
	of := 1 + random.IntN(workers)
	for _, s := range random.Perm(shards) {
		w := random.IntN(of)
		config[w] = append(config[w], s)
	}
	return config
}
