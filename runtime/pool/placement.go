package pool

import (
	"cmp"
	"container/heap"
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
			nanos += n.turns * hopNanos / 2
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

// refine moves single instances away from the heaviest worker, or to it where
// those are that they talk to, as long as that helps.
func (p *placement) refine(at []int) []int {
	var active []int
	for i := range at {
		if p.active(i) {
			active = append(active, i)
		}
	}
	if len(active) > activeMax { // the others are light
		slices.SortStableFunc(active, func(a, b int) int { return cmp.Compare(p.cost[b], p.cost[a]) })
		active = active[:activeMax]
	}
	loads := p.loads(at)
	talk := make([][]int64, len(at)) // of each active instance, to each worker: half of what hops cost
	all := make([]int64, len(at))
	for _, i := range active {
		talk[i] = make([]int64, p.workers)
		for _, n := range p.passing[i] {
			if w := at[n.other]; w >= 0 && n.other != i {
				talk[i][w] += n.turns * hopNanos / 2
				all[i] += n.turns * hopNanos / 2
			}
		}
	}
	moved := func(i, from, to int) (left, came int64) {
		return loads[from] - p.cost[i] - all[i] + 2*talk[i][from], loads[to] + p.cost[i] + all[i] - 2*talk[i][to]
	}
	for range movesMax {
		if p.ended() {
			return at
		}
		heaviest := 0
		for w, load := range loads {
			if load > loads[heaviest] {
				heaviest = w
			}
		}
		instance, worker, best := -1, -1, loads[heaviest]
		try := func(i, w int) {
			if left, came := moved(i, at[i], w); max(left, came) < best {
				instance, worker, best = i, w, max(left, came)
			}
		}
		for _, i := range active {
			if at[i] != heaviest {
				try(i, heaviest)
				continue
			}
			for w := range p.workers {
				if w != heaviest {
					try(i, w)
				}
			}
		}
		if instance < 0 {
			return at
		}
		from := at[instance]
		loads[from], loads[worker] = moved(instance, from, worker)
		at[instance] = worker
		for _, n := range p.passing[instance] {
			if talk[n.other] != nil && n.other != instance {
				talk[n.other][from] -= n.turns * hopNanos / 2
				talk[n.other][worker] += n.turns * hopNanos / 2
			}
		}
	}
	return at
}

// remaining are the instances that are not yet placed, by cost.
type remaining struct {
	p      *placement
	total  int64
	order  []int   // instances by cost, ascending
	rank   []int   // of an instance in order
	below  []int   // by rank: the next lower or equal rank that remains, shortened on the way; -1: none
	gone   []bool  // by instance
	passed []int64 // by instance: turns exchanged with those chosen
	near   nearHeap
	met    []int // with passed > 0
}

func newRemaining(p *placement) *remaining {
	r := &remaining{p: p, rank: make([]int, len(p.at)), gone: make([]bool, len(p.at)), passed: make([]int64, len(p.at))}
	for i := range p.at {
		if p.active(i) {
			r.order = append(r.order, i)
			r.total += p.cost[i]
		} else {
			r.gone[i] = true
		}
	}
	slices.SortStableFunc(r.order, func(a, b int) int { return cmp.Compare(p.cost[a], p.cost[b]) })
	r.below = make([]int, len(r.order))
	for rank, i := range r.order {
		r.rank[i], r.below[rank] = rank, rank
	}
	return r
}

// begin forgets who was chosen: the next worker's turn.
func (r *remaining) begin() {
	for _, i := range r.met {
		r.passed[i] = 0
	}
	r.met, r.near = r.met[:0], r.near[:0]
}

// atMost finds the highest rank that remains, from a rank downwards.
func (r *remaining) atMost(rank int) int {
	root := rank
	for root >= 0 && r.below[root] != root {
		root = r.below[root]
	}
	for rank >= 0 && rank != root {
		rank, r.below[rank] = r.below[rank], root
	}
	return root
}

// largest returns the instance that costs most.
func (r *remaining) largest() (int, bool) {
	rank := r.atMost(len(r.order) - 1)
	if rank < 0 {
		return 0, false
	}
	return r.order[rank], true
}

// next returns the instance that is to join those chosen and costs at most
// room: the one that exchanges most with them, else the largest.
func (r *remaining) next(room int64) (int, bool) {
	for len(r.near) > 0 {
		n := heap.Pop(&r.near).(near)
		if !r.gone[n.instance] && n.turns == r.passed[n.instance] && r.p.cost[n.instance] <= room {
			return n.instance, true
		} // else placed, or entered again with more, or too large, also for what room is left later
	}
	high, _ := slices.BinarySearchFunc(r.order, room+1, func(i int, cost int64) int { return cmp.Compare(r.p.cost[i], cost) })
	if rank := r.atMost(high - 1); rank >= 0 {
		return r.order[rank], true
	}
	return 0, false
}

// take says that i is placed beside those chosen.
func (r *remaining) take(i int) {
	r.gone[i] = true
	rank := r.rank[i]
	r.below[rank] = rank - 1
	for _, n := range r.p.passing[i] {
		if !r.gone[n.other] && n.turns > 0 {
			if r.passed[n.other] == 0 {
				r.met = append(r.met, n.other)
			}
			r.passed[n.other] += n.turns
			heap.Push(&r.near, near{n.other, r.passed[n.other]})
		}
	}
}

// near is an instance that exchanges messages with those chosen.
type near struct {
	instance int
	turns    int64
}

// nearHeap has the most turns on top.
type nearHeap []near

func (h nearHeap) Len() int { return len(h) }
func (h nearHeap) Less(i, j int) bool {
	return h[i].turns > h[j].turns || h[i].turns == h[j].turns && h[i].instance < h[j].instance
}
func (h nearHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *nearHeap) Push(x any)   { *h = append(*h, x.(near)) }
func (h *nearHeap) Pop() any {
	old := *h
	n := old[len(old)-1]
	*h = old[:len(old)-1]
	return n
}
