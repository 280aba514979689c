package shard_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/topogen/topogen/runtime/shard"
)

// Primes is a job of the reader's own: it counts the primes of ranges. A range
// is a shard. High ones cost more than low ones, so a division into equal numbers
// of ranges would leave some workers with nothing to do.
type Primes struct{ ranges []Range }

// Range is what belongs to a shard: it needs no lock.
type Range struct {
	next, end int
	primes    int
	cost      int // divisions tried since the last decision
}

// ProcessShard counts on in a range, for a while.
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
	if mayUpdate { // Resharding reads it
		r.cost += cost
	}
	return nil
}

// PreProcess would be the place to wait, if there were something to wait for.
func (p *Primes) PreProcess(context.Context, int, bool) error { return nil }

// OnSwitch measures anew.
func (p *Primes) OnSwitch(_ int, shards []int) {
	for _, s := range shards {
		p.ranges[s].cost = 0
	}
}

// InitialSharding knows nothing of costs yet.
func (p *Primes) InitialSharding(workers int) ([][]int, error) {
	return shard.RoundRobin(len(p.ranges), workers), nil
}

// Resharding gives each range, the most expensive first, to the worker that has
// the least to do so far.
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

// MaxWorkers is what the job can keep busy.
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

// Pages by themselves, for a program that has workers of its own.
func ExamplePages() {
	pages, err := shard.NewPages(2, [][]int{{0, 1, 2}, {3}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("epoch", pages.Epoch(), pages.Config(1))
	swap := func(old [][]int) ([][]int, error) { return [][]int{old[1], old[0]}, nil }

	fmt.Println(pages.Promise(0, 1), pages.Promise(0, 1)) // of one worker, counted once
	fmt.Println(pages.Reshard(swap))                      // worker 1 may still update what a decision reads
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
