package plan

import (
	"container/heap"
	"slices"

	"github.com/topogen/topogen/spec"
)

// groups finds the strongly connected components and puts them upstream first;
// where the edges leave the order open, the component with the processor that
// comes first in the file goes first.
func (b *builder) groups() {
	p := b.plan
	next := make([][]int, len(p.Processors))
	self := make([]bool, len(p.Processors))
	for _, l := range p.Links {
		next[l.From] = append(next[l.From], l.To)
		if l.From == l.To {
			self[l.From] = true
		}
	}
	of := spec.Components(next)
	components := make([][]int, len(next)) // each in ascending order; the last ones may be empty
	for i, c := range of {
		components[c] = append(components[c], i)
	}
	components = slices.DeleteFunc(components, func(c []int) bool { return c == nil })
	for _, at := range topological(components, of, next) {
		for _, i := range components[at] {
			p.Processors[i].Group = len(p.Groups)
		}
		p.Groups = append(p.Groups, Group{
			Processors: components[at],
			Cyclic:     len(components[at]) > 1 || self[components[at][0]],
		})
	}
	for i := range p.Links {
		l := &p.Links[i]
		from, to := p.Processors[l.From].Group, p.Processors[l.To].Group
		l.InCycle = from == to
		for _, e := range l.Edges {
			p.Edges[e].InCycle = l.InCycle
		}
		if from != to {
			p.Groups[to].Upstream = append(p.Groups[to].Upstream, from)
			p.Groups[from].Downstream = append(p.Groups[from].Downstream, to)
		}
	}
	for i := range p.Groups {
		g := &p.Groups[i]
		g.Upstream = sorted(g.Upstream)
		g.Downstream = sorted(g.Downstream)
		g.OnlyTimers = len(g.Upstream) == 0 && b.timed(g)
	}
}

// timed reports whether a timer goes to some member of g. Whether a member also
// has Ping or Serve is for bind to find out.
func (b *builder) timed(g *Group) bool {
	for _, i := range g.Processors {
		for _, e := range b.plan.Processors[i].Incoming {
			if b.plan.Edges[e].From < 0 {
				return true
			}
		}
	}
	return false
}

func sorted(list []int) []int {
	slices.Sort(list)
	return slices.Compact(list)
}

// topological orders components so that every edge between two goes forward.
func topological(components [][]int, of []int, next [][]int) []int {
	waiting := make([]int, len(components)) // edges in from components not yet placed
	for v, list := range next {
		for _, w := range list {
			if of[v] != of[w] {
				waiting[of[w]]++
			}
		}
	}
	ready := &firstMember{components: components}
	for c, n := range waiting {
		if n == 0 {
			heap.Push(ready, c)
		}
	}
	order := make([]int, 0, len(components))
	for ready.Len() > 0 {
		c := heap.Pop(ready).(int)
		order = append(order, c)
		for _, v := range components[c] {
			for _, w := range next[v] {
				if of[w] == c {
					continue
				}
				if waiting[of[w]]--; waiting[of[w]] == 0 {
					heap.Push(ready, of[w])
				}
			}
		}
	}
	return order
}

// firstMember is a heap of components by their first processor.
type firstMember struct {
	components [][]int
	list       []int
}

func (h *firstMember) Len() int { return len(h.list) }
func (h *firstMember) Less(i, j int) bool {
	return h.components[h.list[i]][0] < h.components[h.list[j]][0]
}
func (h *firstMember) Swap(i, j int) { h.list[i], h.list[j] = h.list[j], h.list[i] }
func (h *firstMember) Push(x any)    { h.list = append(h.list, x.(int)) }
func (h *firstMember) Pop() any {
	last := len(h.list) - 1
	x := h.list[last]
	h.list = h.list[:last]
	return x
}
