package piper

import (
	"cmp"
	"slices"
	"time"
)

const (
	hopNanos    = 400  // what a turn costs more when its messages come from another worker, both sides together
	gainMin     = 0.1  // of the heaviest worker's load: less is not worth a move
	doubtFactor = 3    // standard errors: less may be noise
	moveNanos   = 5000 // a move, with what it throws out of caches, must be worth it within one period
	movesMax    = 1024 // single moves that are tried to better a placement
	activeMax   = 512  // instances, above which single moves are not tried
	busyMin     = 0.05 // of the time, by the heaviest worker: below it nobody waits for a worker
	keepFactor  = 1.05 // a placement from scratch must be so much better than one that keeps instances where they are
)

// placement decides which worker runs which instance (rast.md 2.13). It is a
// pure function of what was measured.
//
// The text's goal is one share of the total cost for each worker. Ours is the
// load of the heaviest worker, which bounds what the topology can do: the cost of
// its instances and of the turns that messages from other workers cause.
type placement struct {
	workers int
	ended   func() bool // nobody wants the plan any more
	window  time.Duration
	cost    []int64     // nanoseconds in it, of each instance
	doubt   int64       // standard error of the sum of all costs
	passing [][]passing // of each instance, to and from others: both see it
	at      []int       // the worker of each; -1: it is not to be placed
}

// passing is what is sent between two instances, both ways.
type passing struct {
	other int
	turns int64 // of either, which began because of it
}

// nanos is what it costs either side where they are on different workers.
func (n passing) nanos() int64 { return n.turns * hopNanos / 2 }

// plan returns a better worker for each instance, and whether going there pays.
func (p *placement) plan() (to []int, pays bool) {
	now := p.heaviest(p.loads(p.at))
	if p.workers < 2 || now == 0 || float64(now) < busyMin*float64(p.window) {
		return p.at, false
	}
	to = p.refine(slices.Clone(p.at))
	load := p.heaviest(p.loads(to))
	for _, fresh := range [][]int{p.greedy(), p.together()} {
		fresh = p.refine(p.relabel(fresh))
		if other := p.heaviest(p.loads(fresh)); float64(load) > keepFactor*float64(other) {
			to, load = fresh, other
		}
	}
	moves := 0
	for i, w := range to {
		if w != p.at[i] {
			moves++
		}
	}
	gain := float64(now - load)
	return to, gain > gainMin*float64(now) && gain > doubtFactor*float64(p.doubt) && gain > float64(moves*moveNanos)
}

// loads sums up the work of each worker where instances are at those workers.
func (p *placement) loads(at []int) []int64 {
	loads := make([]int64, p.workers)
	for i, w := range at {
		if w >= 0 {
			loads[w] += p.cost[i] + p.hops(at, i, w)
		}
	}
	return loads
}

// hops is what instance i pays on worker w for its neighbours on others.
func (p *placement) hops(at []int, i, w int) (nanos int64) {
	for _, n := range p.passing[i] {
		if other := at[n.other]; other >= 0 && other != w {
			nanos += n.nanos()
		}
	}
	return nanos
}

func (p *placement) heaviest(loads []int64) int64 { return slices.Max(loads) }

// active reports whether there is a reason to place instance i at all.
func (p *placement) active(i int) bool {
	return p.at[i] >= 0 && (p.cost[i] > 0 || len(p.passing[i]) > 0)
}

// greedy places from scratch as rast.md 2.13 does: an instance that costs more
// than a share gets a worker of its own; else a worker is filled up to a share,
// first with those that exchange most with the ones it has. What is left over
// goes to the worker with the least, not to the last (R-F9).
func (p *placement) greedy() []int {
	at := slices.Clone(p.at)
	queue := newRemaining(p)
	share := queue.total / int64(p.workers)
	loads := make([]int64, p.workers)
	for w := range p.workers {
		queue.begin()
		if i, ok := queue.largest(); ok && p.cost[i] > share {
			queue.take(i)
			at[i] = w
			loads[w] = p.cost[i]
			continue
		}
		for !p.ended() {
			i, ok := queue.next(share - loads[w])
			if !ok {
				break
			}
			queue.take(i)
			at[i] = w
			loads[w] += p.cost[i]
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
		loads[least] += p.cost[i]
	}
}

// together places all on one worker: where they talk more than they work, the
// others are better left out.
func (p *placement) together() []int {
	at := slices.Clone(p.at)
	for i := range at {
		if p.active(i) {
			at[i] = 0
		}
	}
	return at
}

// relabel exchanges whole workers, so that most stays where it is: the numbers
// of workers mean nothing.
func (p *placement) relabel(at []int) []int {
	type overlap struct {
		from, to int
		cost     int64
	}
	sums := make(map[[2]int]int64)
	for i, w := range at {
		if p.active(i) {
			sums[[2]int{w, p.at[i]}] += p.cost[i] + 1
		}
	}
	overlaps := make([]overlap, 0, len(sums))
	for pair, cost := range sums {
		overlaps = append(overlaps, overlap{pair[0], pair[1], cost})
	}
	slices.SortFunc(overlaps, func(a, b overlap) int {
		return cmp.Or(cmp.Compare(b.cost, a.cost), cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
	})
	label := slices.Repeat([]int{-1}, p.workers)
	used := make([]bool, p.workers)
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
