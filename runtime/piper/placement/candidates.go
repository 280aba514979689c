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

func newCandidates(p *Measured) *candidates {
	c := &candidates{p: p, rank: make([]int, len(p.At)), placed: make([]bool, len(p.At)), passed: make([]int64, len(p.At))}
	for i := range p.At {
		if p.active(i) {
			c.order = append(c.order, i)
			c.total += p.Cost[i]
		} else {
			c.placed[i] = true
		}
	}
	slices.SortStableFunc(c.order, func(a, b int) int { return cmp.Compare(p.Cost[a], p.Cost[b]) })
	c.below = make([]int, len(c.order))
	for rank, i := range c.order {
		c.rank[i], c.below[rank] = rank, rank
	}
	return c
}

// begin begins with the next worker.
func (c *candidates) begin() {
	for _, i := range c.touched {
		c.passed[i] = 0
	}
	c.touched, c.near = c.touched[:0], c.near[:0]
}

// atMost returns the highest remaining rank that is not above the given rank, or -1.
func (c *candidates) atMost(rank int) int {
	root := rank
	for root >= 0 && c.below[root] != root {
		root = c.below[root]
	}
	for rank >= 0 && rank != root {
		rank, c.below[rank] = c.below[rank], root
	}
	return root
}

// largest returns the remaining instance with the highest cost.
func (c *candidates) largest() (int, bool) {
	rank := c.atMost(len(c.order) - 1)
	if rank < 0 {
		return 0, false
	}
	return c.order[rank], true
}

// next returns the next instance for the current worker, with a cost of at most room.
// It prefers the instance with the most turns exchanged with instances of the worker;
// if there is none, it returns the largest.
func (c *candidates) next(room int64) (int, bool) {
	for len(c.near) > 0 {
		n := heap.Pop(&c.near).(near)
		if !c.placed[n.instance] && n.turns == c.passed[n.instance] && c.p.Cost[n.instance] <= room {
			return n.instance, true
		} // otherwise it is placed, is in the heap again with more turns, or is too large for this worker
	}
	high, _ := slices.BinarySearchFunc(c.order, room+1, func(i int, cost int64) int { return cmp.Compare(c.p.Cost[i], cost) })
	if rank := c.atMost(high - 1); rank >= 0 {
		return c.order[rank], true
	}
	return 0, false
}

// take places i on the current worker.
func (c *candidates) take(i int) {
	c.placed[i] = true
	rank := c.rank[i]
	c.below[rank] = rank - 1
	for _, n := range c.p.Traffic[i] {
		if !c.placed[n.Other] && n.Turns > 0 {
			if c.passed[n.Other] == 0 {
				c.touched = append(c.touched, n.Other)
			}
			c.passed[n.Other] += n.Turns
			heap.Push(&c.near, near{n.Other, c.passed[n.Other]})
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
