package plan

import (
	"container/heap"
	"slices"
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
	components, of := components(next)
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

// components is Tarjan's algorithm ("Depth-first search and linear graph
// algorithms", 1972) with a stack of its own, since a chain of thousands of
// processors must not nest as many calls. It returns the components, each in
// ascending order, and the component of each node.
func components(next [][]int) (list [][]int, of []int) {
	n := len(next)
	of = make([]int, n)
	index, low := make([]int, n), make([]int, n) // index 0: not visited
	edge := make([]int, n)                       // the next edge to look at
	open := make([]bool, n)
	var stack, calls []int
	count := 0
	for root := range n {
		if index[root] != 0 {
			continue
		}
		calls = append(calls, root)
		for len(calls) > 0 {
			v := calls[len(calls)-1]
			if index[v] == 0 {
				count++
				index[v], low[v] = count, count
				stack, open[v] = append(stack, v), true
			}
			if edge[v] < len(next[v]) {
				w := next[v][edge[v]]
				edge[v]++
				switch {
				case index[w] == 0:
					calls = append(calls, w)
				case open[w]:
					low[v] = min(low[v], index[w])
				}
				continue
			}
			calls = calls[:len(calls)-1]
			if len(calls) > 0 {
				parent := calls[len(calls)-1]
				low[parent] = min(low[parent], low[v])
			}
			if low[v] != index[v] {
				continue
			}
			at := slices.Index(stack, v)
			component := slices.Clone(stack[at:])
			stack = stack[:at]
			for _, w := range component {
				open[w] = false
				of[w] = len(list)
			}
			slices.Sort(component)
			list = append(list, component)
		}
	}
	return list, of
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
