package spec

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/topogen/topogen/spec/finding"
)

const pathShown = 12 // processors of a cycle in a message; more would not fit on a line

// checkGraph makes the warnings. A topology with a warning works, but probably not as
// intended.
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
	b.checkExposed()
	b.checkListen()
	b.checkUnusedStore()
}

// unconnected returns for each processor whether it has no edge. A processor of kind fsm or raft
// needs none, so it never counts.
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

// deadLetters iterates over the pairs of a processor and the processor that receives its dead
// letters.
func (t *Topology) deadLetters() iter.Seq2[int, int] {
	return func(yield func(from, to int) bool) {
		for i, p := range t.Processors {
			if p.OnError.DeadLetter.Value != "" && !yield(i, p.OnError.DeadLetterTo) {
				return
			}
		}
	}
}

// checkGrowth warns of cycles in which each round turns one message into several and no edge
// drops any. Unless a handler stops sending, the number of messages only grows.
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
	reported := map[int]bool{} // one finding for each strongly connected component
	for _, e := range t.Edges {
		copies := 1
		switch e.Route.Kind {
		case RouteBroadcast:
			to := &t.Processors[max(e.To, 0)]
			if copies = to.Instances; to.Placement.Kind == EveryNode {
				copies *= len(t.Cluster.Nodes)
			}
		case RouteRange:
			copies = e.Route.Count
		}
		if e.From < 0 || e.Full != Block || copies < 2 || group[e.From] != group[e.To] || reported[group[e.To]] {
			continue
		}
		reported[group[e.To]] = true
		pathText := b.pathText(append([]int{e.From}, shortest(next, group, e.To, e.From)...))
		b.found.add(finding.GrowingRing, e.At, e.Pointer,
			fmt.Sprintf("the %s sends each message to %d instances, so the number of messages grows with each round of the cycle %s", e.Route.Kind, copies, pathText),
			`route to one instance, or write "full: drop-oldest" on an edge of the cycle`)
	}
}

// pathText returns a path of processors in the form "a -> b -> a".
func (b *builder) pathText(chain []int) string {
	names := make([]string, len(chain))
	for i, p := range chain {
		names[i] = b.topology.Processors[p].Name.Value
	}
	if len(names) > pathShown {
		names = append(append(names[:pathShown/2:pathShown/2], "…"), names[len(names)-pathShown/2:]...)
	}
	return strings.Join(names, " -> ")
}

// shortest returns the processors on a shortest path within a group, with both ends.
func shortest(next [][]int, group []int, from, to int) []int {
	before := map[int]int{from: from}
	for queue := []int{from}; len(queue) > 0; queue = queue[1:] {
		p := queue[0]
		if p == to {
			chain := []int{p}
			for p != from {
				p = before[p]
				chain = append(chain, p)
			}
			slices.Reverse(chain)
			return chain
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

// Components returns the number of the strongly connected component of each vertex. next holds
// the successors of each vertex. The algorithm is Tarjan's ("Depth-first search and linear
// graph algorithms", 1972). It recurses as deep as the longest path, so callers must have at
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

// Unreachable returns a warning (TG402) for each strongly connected component of processors
// that no message can reach from an external processor, a timer or a source. starts reports
// whether a processor is a source, with Ping or Serve; package bind finds that in its Go code.
// If one unreachable component leads to another, only the first one gets the warning. A
// processor without an edge does not get it, because it has TG401.
//
// Unreachable also returns a warning (TG405) for each edge with a timeout that is too short
// for the ticks that make its sender send, because that depends on starts, too. t must not be
// partial.
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
	entered := map[int]bool{} // components that have an edge from another component
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
		if reached[i] || unconnected[i] || entered[group[i]] || named[group[i]] || p.Machine != nil { // the warning is for its controller
			continue
		}
		named[group[i]] = true
		message := "no message ever reaches " + quoted(p.Name.Value)
		if !slices.ContainsFunc(next, func(to []int) bool { return slices.Contains(to, i) }) {
			message = quoted(p.Name.Value) + " has no input and no Ping or Serve, so it sends nothing"
		}
		findings = append(findings, finding.New(finding.Unreachable, t.File, p.Name.At, p.Pointer,
			message, "add Ping or Serve to its type, or a timer or another input in the file"))
	}
	return findings
}
