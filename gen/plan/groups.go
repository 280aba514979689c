package plan

import (
	"slices"

	"github.com/topogen/topogen/spec"
)

// groups finds the strongly connected components and orders them upstream first. If the
// edges do not determine the order, the component with the first processor in the file
// comes first.
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
	for _, e := range p.Edges {
		if e.Durable != nil {
			next[e.From] = append(next[e.From], e.To)
			self[e.From] = self[e.From] || e.From == e.To
		}
	}
	of := spec.Components(next)
	var components [][]int // ordered by their first processor; each is in ascending order
	numbers := make(map[int]int)
	for i, c := range of {
		number, known := numbers[c]
		if !known {
			number = len(components)
			numbers[c], components = number, append(components, nil)
		}
		of[i], components[number] = number, append(components[number], i)
	}
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
		l.InCycle = b.join(l.From, l.To)
		for _, e := range l.Edges {
			p.Edges[e].InCycle = l.InCycle
		}
	}
	for i := range p.Edges {
		if e := &p.Edges[i]; e.Durable != nil {
			e.InCycle = b.join(e.From, e.To)
		}
	}
	for i := range p.Groups {
		g := &p.Groups[i]
		g.Upstream = sorted(g.Upstream)
		g.Downstream = sorted(g.Downstream)
		g.OnlyTimers = len(g.Upstream) == 0 && b.timed(g)
	}
}

// join records that messages go from one processor to another, and reports whether both are in
// one group.
func (b *builder) join(from, to int) (cycle bool) {
	p := b.plan
	from, to = p.Processors[from].Group, p.Processors[to].Group
	if from != to {
		p.Groups[to].Upstream = append(p.Groups[to].Upstream, from)
		p.Groups[from].Downstream = append(p.Groups[from].Downstream, to)
	}
	return from == to
}

// timed reports whether a member of g has a timer. Only bind knows whether a member also has
// Ping or Serve.
func (b *builder) timed(g *Group) bool {
	return slices.ContainsFunc(g.Processors, func(i int) bool {
		return slices.ContainsFunc(b.plan.Processors[i].Incoming, func(e int) bool { return b.plan.Edges[e].From < 0 })
	})
}

func sorted(list []int) []int {
	slices.Sort(list)
	return slices.Compact(list)
}

// topological orders components so that every edge between two components goes forward. Of
// several components that may come next, it chooses the first.
func topological(components [][]int, of []int, next [][]int) (order []int) {
	incoming := make([]int, len(components)) // number of edges from components that are not in order yet
	for v, list := range next {
		for _, w := range list {
			if of[v] != of[w] {
				incoming[of[w]]++
			}
		}
	}
	var ready []int // ascending
	for c, n := range incoming {
		if n == 0 {
			ready = append(ready, c)
		}
	}
	for len(ready) > 0 {
		c := ready[0]
		ready, order = ready[1:], append(order, c)
		for _, v := range components[c] {
			for _, w := range next[v] {
				if of[w] == c {
					continue
				}
				if incoming[of[w]]--; incoming[of[w]] == 0 {
					at, _ := slices.BinarySearch(ready, of[w])
					ready = slices.Insert(ready, at, of[w])
				}
			}
		}
	}
	return order
}
