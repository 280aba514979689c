package placement

import (
	"cmp"
	"container/heap"
	"slices"
)

// candidates holds the instances that are not placed yet, sorted by cost.
type candidates struct {
	p       *Measured
	total   int64
	order   []int   // instances by cost, ascending
	rank    []int   // by instance: its position in order
	below   []int   // by rank: the next lower or equal rank that remains, with path compression; -1 if there is none
	placed  []bool  // by instance
	passed  []int64 // by instance: turns exchanged with the instances of the current worker
	near    nearHeap
	touched []int // instances with passed > 0
}

func newRemaining(p *Measured) *candidates {
	r := &candidates{p: p, rank: make([]int, len(p.At)), placed: make([]bool, len(p.At)), passed: make([]int64, len(p.At))}
	for i := range p.At {
		if p.active(i) {
			r.order = append(r.order, i)
			r.total += p.Cost[i]
		} else {
			r.placed[i] = true
		}
	}
	slices.SortStableFunc(r.order, func(a, b int) int { return cmp.Compare(p.Cost[a], p.Cost[b]) })
	r.below = make([]int, len(r.order))
	for rank, i := range r.order {
		r.rank[i], r.below[rank] = rank, rank
	}
	return r
}

// begin begins with the next worker.
func (r *candidates) begin() {
	for _, i := range r.touched {
		r.passed[i] = 0
	}
	r.touched, r.near = r.touched[:0], r.near[:0]
}

// atMost returns the highest remaining rank that is not above the given rank, or -1.
func (r *candidates) atMost(rank int) int {
	root := rank
	for root >= 0 && r.below[root] != root {
		root = r.below[root]
	}
	for rank >= 0 && rank != root {
		rank, r.below[rank] = r.below[rank], root
	}
	return root
}

// largest returns the remaining instance with the highest cost.
func (r *candidates) largest() (int, bool) {
	rank := r.atMost(len(r.order) - 1)
	if rank < 0 {
		return 0, false
	}
	return r.order[rank], true
}

// next returns the next instance for the current worker, with a cost of at most room.
// It prefers the instance with the most turns exchanged with instances of the worker;
// if there is none, it returns the largest.
func (r *candidates) next(room int64) (int, bool) {
	for len(r.near) > 0 {
		n := heap.Pop(&r.near).(near)
		if !r.placed[n.instance] && n.turns == r.passed[n.instance] && r.p.Cost[n.instance] <= room {
			return n.instance, true
		} // otherwise it is placed, is in the heap again with more turns, or is too large for this worker
	}
	high, _ := slices.BinarySearchFunc(r.order, room+1, func(i int, cost int64) int { return cmp.Compare(r.p.Cost[i], cost) })
	if rank := r.atMost(high - 1); rank >= 0 {
		return r.order[rank], true
	}
	return 0, false
}

// take places i on the current worker.
func (r *candidates) take(i int) {
	r.placed[i] = true
	rank := r.rank[i]
	r.below[rank] = rank - 1
	for _, n := range r.p.Traffic[i] {
		if !r.placed[n.Other] && n.Turns > 0 {
			if r.passed[n.Other] == 0 {
				r.touched = append(r.touched, n.Other)
			}
			r.passed[n.Other] += n.Turns
			heap.Push(&r.near, near{n.Other, r.passed[n.Other]})
		}
	}
}

// near is an instance that exchanges messages with the instances of the current worker.
type near struct {
	instance int
	turns    int64
}

// nearHeap is a heap with the most turns on top.
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
