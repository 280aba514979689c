package shard_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/topogen/topogen/runtime/shard"
)

// Primes is an example job: it counts the primes in ranges of numbers. Each range is a
// shard. Ranges with high numbers cost more, so with equal numbers of ranges some workers
// would soon have nothing to do.
type Primes struct{ ranges []Range }

// Range is the data of a shard. It needs no lock.
type Range struct {
	next, end int
	primes    int
	cost      int // divisions since the last decision
}

// ProcessShard continues counting in a range, for a limited number of steps.
func (p *Primes) ProcessShard(_ context.Context, number int, mayUpdate bool) error {
	r := &p.ranges[number]
	cost := 0
	for range 500 {
		if r.next == r.end {
			return shard.Done
		}
		d := 2
		for d*d <= r.next && r.next%d != 0 {
			d++
		}
		if r.next > 1 && d*d > r.next {
			r.primes++
		}
		cost += d
		r.next++
	}
	if mayUpdate { // Resharding reads the cost
		r.cost += cost
	}
	return nil
}

// PreProcess does nothing, because this job never has to wait.
func (p *Primes) PreProcess(context.Context, int, bool) error { return nil }

// OnSwitch resets the costs.
func (p *Primes) OnSwitch(_ int, shards []int) {
	for _, s := range shards {
		p.ranges[s].cost = 0
	}
}

// InitialSharding ignores costs, which are not known yet.
func (p *Primes) InitialSharding(workers int) ([][]int, error) {
	return shard.RoundRobin(len(p.ranges), workers), nil
}

// Resharding gives each range, the most expensive first, to the worker with the lowest
// cost so far.
func (p *Primes) Resharding(old [][]int) ([][]int, error) {
	shards := slices.Concat(old...)
	slices.SortFunc(shards, func(a, b int) int { return cmp.Compare(p.ranges[b].cost, p.ranges[a].cost) })
	next, load := make([][]int, len(old)), make([]int, len(old))
	for _, s := range shards {
		w := slices.Index(load, slices.Min(load))
		next[w] = append(next[w], s)
		load[w] += p.ranges[s].cost
	}
	return next, nil
}

// MaxWorkers is the number of ranges.
func (p *Primes) MaxWorkers() int { return len(p.ranges) }

func Example() {
	job := &Primes{}
	for from := 0; from < 200_000; from += 10_000 {
		job.ranges = append(job.ranges, Range{next: from, end: from + 10_000})
	}
	s := shard.Sharder[*Primes]{Controller: job, Interval: time.Millisecond}
	if err := s.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
	primes := 0
	for _, r := range job.ranges {
		primes += r.primes
	}
	fmt.Println(primes, "primes below 200000")
	// Output: 17984 primes below 200000
}

// A program with its own workers can use Pages without a Sharder.
func ExamplePages() {
	pages, err := shard.NewPages(2, [][]int{{0, 1, 2}, {3}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("epoch", pages.Epoch(), pages.Config(1))
	swap := func(old [][]int) ([][]int, error) { return [][]int{old[1], old[0]}, nil }

	fmt.Println(pages.Promise(0, 1), pages.Promise(0, 1)) // the second promise of worker 0 is not counted
	fmt.Println(pages.Reshard(swap))                      // false: worker 1 has not promised yet
	fmt.Println(pages.Promise(1, 1))
	fmt.Println(pages.Reshard(swap))
	fmt.Println("epoch", pages.Epoch(), pages.Config(2))
	// Output:
	// epoch 1 [[0 1 2] [3]]
	// false false
	// false <nil>
	// true
	// true <nil>
	// epoch 2 [[3] [0 1 2]]
}
