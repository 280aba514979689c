// Package placement decides which worker runs which instance. [Measured.Plan] is a pure
// function of measurements. Workers and instances are numbers.
//
// The goal is a low load of the heaviest worker, because that load bounds the throughput of
// the topology. The load of a worker is the cost of its instances and of the turns that
// messages from other workers cause.
package placement

import (
	"cmp"
	"slices"
	"time"
)

const (
	hopNanos      = 400  // additional cost of a turn whose messages come from another worker, for both workers together
	gainMin       = 0.1  // minimum gain, as a part of the heaviest worker's load
	gainErrorsMin = 3    // minimum gain in standard errors: a smaller one may be noise
	moveNanos     = 5000 // cost of a move, including cache misses; the gain in the window must exceed it
	movesMax      = 1024 // maximum number of single moves in a refinement
	activeMax     = 512  // maximum number of instances for which single moves are tried
	busyMin       = 0.05 // minimum utilization of the heaviest worker: below it no instance waits for a worker
	keepFactor    = 1.05 // a placement from scratch must be better by this factor than a refined current placement
)

// Measured has the costs of a window that ends now. Older costs count half at each decision.
type Measured struct {
	Workers  int
	Window   time.Duration
	Cost     []int64     // by instance: nanoseconds in the window
	StdError int64       // standard error of the sum of all costs
	Traffic  [][]Traffic // by instance: messages to and from other instances; listed on both sides
	At       []int       // by instance: the current worker; -1 if the instance is not placed
	Ended    func() bool // reports whether the plan is no longer needed
}

// Traffic is the number of turns that messages between two instances have caused, in both directions.
type Traffic struct {
	Other int
	Turns int64 // turns of either instance that these messages caused
}

// nanos is the cost for each side if the instances are on different workers.
func (n Traffic) nanos() int64 { return n.Turns * hopNanos / 2 }

// Plan returns a better worker for each instance, and whether the moves pay.
func (p *Measured) Plan() (to []int, pays bool) {
	now := p.Load(p.At)
	if p.Workers < 2 || now == 0 || float64(now) < busyMin*float64(p.Window) {
		return p.At, false
	}
	to = p.refine(slices.Clone(p.At))
	load := p.Load(to)
	for _, fresh := range [][]int{p.greedy(), p.together()} {
		fresh = p.refine(p.relabel(fresh))
		if other := p.Load(fresh); float64(load) > keepFactor*float64(other) {
			to, load = fresh, other
		}
	}
	moves := 0
	for i, w := range to {
		if w != p.At[i] {
			moves++
		}
	}
	gain := float64(now - load)
	return to, gain > gainMin*float64(now) && gain > gainErrorsMin*float64(p.StdError) && gain > float64(moves*moveNanos)
}

// loads returns the load of each worker for the placement at.
func (p *Measured) loads(at []int) []int64 {
	loads := make([]int64, p.Workers)
	for i, w := range at {
		if w >= 0 {
			loads[w] += p.Cost[i] + p.hops(at, i, w)
		}
	}
	return loads
}

// hops is the additional cost of instance i on worker w for messages from and to
// instances on other workers.
func (p *Measured) hops(at []int, i, w int) (nanos int64) {
	for _, n := range p.Traffic[i] {
		if other := at[n.Other]; other >= 0 && other != w {
			nanos += n.nanos()
		}
	}
	return nanos
}

// Load is the load of the heaviest worker with the placement at.
func (p *Measured) Load(at []int) int64 { return slices.Max(p.loads(at)) }

// active reports whether instance i has a cost or messages, so that its placement
// matters.
func (p *Measured) active(i int) bool {
	return p.At[i] >= 0 && (p.Cost[i] > 0 || len(p.Traffic[i]) > 0)
}

// greedy makes a placement from scratch. An instance that costs more than a worker's
// share gets a worker of its own. Otherwise a worker is filled up to its share, first
// with the instances that exchange most messages with those it already has. The
// remaining instances go to the worker with the lowest load.
func (p *Measured) greedy() []int {
	at := slices.Clone(p.At)
	queue := newCandidates(p)
	share := queue.total / int64(p.Workers)
	loads := make([]int64, p.Workers)
	for w := range p.Workers {
		queue.begin()
		if i, ok := queue.largest(); ok && p.Cost[i] > share {
			queue.take(i)
			at[i] = w
			loads[w] = p.Cost[i]
			continue
		}
		for !p.Ended() {
			i, ok := queue.next(share - loads[w])
			if !ok {
				break
			}
			queue.take(i)
			at[i] = w
			loads[w] += p.Cost[i]
		}
	}
	for {
		i, ok := queue.largest()
		if !ok {
			return at
		}
		queue.take(i)
		least := 0
		for w, load := range loads {
			if load < loads[least] {
				least = w
			}
		}
		at[i] = least
		loads[least] += p.Cost[i]
	}
}

// together places all instances on one worker. This is best if messages between workers
// would cost more than the work itself.
func (p *Measured) together() []int {
	at := slices.Clone(p.At)
	for i := range at {
		if p.active(i) {
			at[i] = 0
		}
	}
	return at
}

// relabel renumbers the workers of a placement, so that most instances stay on their
// worker. The numbers have no meaning of their own.
func (p *Measured) relabel(at []int) []int {
	type overlap struct {
		from, to int
		cost     int64
	}
	sums := make(map[[2]int]int64)
	for i, w := range at {
		if p.active(i) {
			sums[[2]int{w, p.At[i]}] += p.Cost[i] + 1
		}
	}
	overlaps := make([]overlap, 0, len(sums))
	for pair, cost := range sums {
		overlaps = append(overlaps, overlap{pair[0], pair[1], cost})
	}
	slices.SortFunc(overlaps, func(a, b overlap) int {
		return cmp.Or(cmp.Compare(b.cost, a.cost), cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
	})
	label := slices.Repeat([]int{-1}, p.Workers)
	used := make([]bool, p.Workers)
	for _, o := range overlaps {
		if label[o.from] < 0 && !used[o.to] {
			label[o.from], used[o.to] = o.to, true
		}
	}
	for w := range label {
		if label[w] < 0 {
			label[w] = slices.Index(used, false)
			used[label[w]] = true
		}
	}
	for i, w := range at {
		if p.active(i) {
			at[i] = label[w]
		}
	}
	return at
}
