package spec

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/topogen/topogen/spec/finding"
)

const ringShown = 12 // processors of a ring in a message: what fits a line

// checkGraph makes the warnings: each topology with them works, and is hardly
// what was meant.
func (b *builder) checkGraph() {
	for i, unconnected := range b.topology.unconnected() {
		if unconnected {
			name := b.topology.Processors[i].Name
			b.found.addText(finding.NoEdges, name, "no edge begins or ends at "+quoted(name.Value), "add an edge, or remove the processor")
		}
	}
	b.checkGrowth()
	b.checkRestarts()
	b.checkSiblings()
	b.checkAttempts()
	b.checkTicks()
}

// unconnected says which processors no edge begins or ends at. A machine needs none.
func (t *Topology) unconnected() []bool {
	unconnected := make([]bool, len(t.Processors))
	for i, p := range t.Processors {
		unconnected[i] = p.Machine == nil
	}
	for _, e := range t.Edges {
		if e.From >= 0 {
			unconnected[e.From] = false
		}
		unconnected[e.To] = false
	}
	for from, to := range t.deadLetters() {
		unconnected[from], unconnected[to] = false, false
	}
	return unconnected
}

// deadLetters are the edges that the file does not declare: from a processor to
// the one that its dead letters go to.
func (t *Topology) deadLetters() iter.Seq2[int, int] {
	return func(yield func(from, to int) bool) {
		for i, p := range t.Processors {
			if p.OnError.DeadLetter.Value != "" && !yield(i, p.OnError.DeadLetterTo) {
				return
			}
		}
	}
}

// checkGrowth warns of rings in which each lap makes several messages of one and
// nothing is ever dropped: unless a handler breaks the ring, it only grows.
func (b *builder) checkGrowth() {
	t := b.topology
	next := make([][]int, len(t.Processors))
	for _, e := range t.Edges {
		if e.From >= 0 && e.Full == Block {
			next[e.From] = append(next[e.From], e.To)
		}
	}
	for from, to := range t.deadLetters() {
		next[from] = append(next[from], to)
	}
	group := Components(next)
	reported := map[int]bool{} // one ring of a group is enough to look at
	for _, e := range t.Edges {
		copies := 1
		switch e.Route.Kind {
		case RouteBroadcast:
			copies = t.Processors[max(e.To, 0)].Instances
		case RouteRange:
			copies = e.Route.Count
		}
		if e.From < 0 || e.Full != Block || copies < 2 || group[e.From] != group[e.To] || reported[group[e.To]] {
			continue
		}
		reported[group[e.To]] = true
		ring := b.ring(append([]int{e.From}, shortest(next, group, e.To, e.From)...))
		b.found.add(finding.GrowingRing, e.At, e.Pointer,
			fmt.Sprintf("each round of the cycle %s turns one message into %d and drops none", ring, copies),
			`route to one instance, or write "full: drop-oldest" on an edge of the cycle`)
	}
}

// ring is a way through processors as a person would write it.
func (b *builder) ring(way []int) string {
	names := make([]string, len(way))
	for i, p := range way {
		names[i] = b.topology.Processors[p].Name.Value
	}
	if len(names) > ringShown {
		names = append(append(names[:ringShown/2:ringShown/2], "…"), names[len(names)-ringShown/2:]...)
	}
	return strings.Join(names, " -> ")
}

// shortest returns the processors on a shortest way from one to another within their
// group, both included.
func shortest(next [][]int, group []int, from, to int) []int {
	before := map[int]int{from: from}
	for queue := []int{from}; len(queue) > 0; queue = queue[1:] {
		p := queue[0]
		if p == to {
			way := []int{p}
			for p != from {
				p = before[p]
				way = append(way, p)
			}
			slices.Reverse(way)
			return way
		}
		for _, q := range next[p] {
			if _, ok := before[q]; !ok && group[q] == group[from] {
				before[q] = p
				queue = append(queue, q)
			}
		}
	}
	return nil
}

// Components returns the number of the strongly connected component of each vertex: next
// has the ends of its edges. It is Tarjan's algorithm ("Depth-first search and linear
// graph algorithms", 1972), which recurses as deep as the longest path: callers have at
// most processorsMax vertices.
func Components(next [][]int) []int {
	component, low, order := make([]int, len(next)), make([]int, len(next)), make([]int, len(next))
	var stack []int
	visited, count := 0, 0
	var visit func(v int)
	visit = func(v int) {
		visited++
		order[v], low[v], component[v] = visited, visited, -1
		stack = append(stack, v)
		for _, w := range next[v] {
			if order[w] == 0 {
				visit(w)
				low[v] = min(low[v], low[w])
			} else if component[w] < 0 {
				low[v] = min(low[v], order[w])
			}
		}
		if low[v] != order[v] {
			return
		}
		for component[v] < 0 {
			component[stack[len(stack)-1]] = count
			stack = stack[:len(stack)-1]
		}
		count++
	}
	for v := range next {
		if order[v] == 0 {
			visit(v)
		}
	}
	return component
}

// Unreachable returns a warning (TG402) for each group of processors that no
// message can ever reach: nothing external, no timer and no processor that
// starts by itself leads there. starts says which processors do, by Ping or
// Serve; only their Go code tells. Of processors that are reached from one
// another only the first group is named. One without any edge is not named: TG401
// is its finding. Unreachable also returns a warning (TG405) for each edge whose
// timeout is too short for the ticks that make its sender send, since that depends
// on starts too. t must not be partial.
func Unreachable(t *Topology, starts func(processor int) bool) []finding.Finding {
	n := len(t.Processors)
	next := make([][]int, n)
	reached := make([]bool, n)
	var queue []int
	reach := func(p int) {
		if !reached[p] {
			reached[p] = true
			queue = append(queue, p)
		}
	}
	for _, e := range t.Edges {
		if e.From < 0 {
			reach(e.To)
			continue
		}
		next[e.From] = append(next[e.From], e.To)
	}
	for from, to := range t.deadLetters() {
		next[from] = append(next[from], to)
	}
	for i, p := range t.Processors {
		if p.External || p.Machine != nil && p.Machine.ControllerTo < 0 || starts(i) {
			reach(i)
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		for _, q := range next[queue[0]] {
			reach(q)
		}
	}
	group := Components(next)
	entered := map[int]bool{} // groups that an unreached one leads to
	for from := range next {
		for _, to := range next[from] {
			if group[from] != group[to] {
				entered[group[to]] = true
			}
		}
	}
	findings := earlyTimeouts(t, starts)
	named := map[int]bool{}
	unconnected := t.unconnected()
	for i, p := range t.Processors {
		if reached[i] || unconnected[i] || entered[group[i]] || named[group[i]] || p.Machine != nil { // its controller is named
			continue
		}
		named[group[i]] = true
		findings = append(findings, finding.New(finding.Unreachable, t.File, p.Name.At, p.Pointer,
			"no message ever reaches "+quoted(p.Name.Value), "give it Ping or Serve, a timer, or an edge from a processor that sends"))
	}
	return findings
}
