package graph

// arc says that rank[head] - rank[tail] >= least. Each unit above least costs weight.
type arc struct {
	tail, head, least, weight int
}

// simplex finds ranks of least total cost by the network simplex method
// (Gansner, Koutsofios, North and Vo, "A technique for drawing directed
// graphs", 1993). The arcs form a connected graph without directed cycles.
type simplex struct {
	arcs   []arc
	near   [][]int // by node: its arcs
	rank   []int
	inTree []bool  // by arc
	tree   [][]int // by node: its tree arcs

	// The tree with node 0 as its root: the preorder, and for each node its arc to its
	// parent (-1 at the root), its index in the preorder, the end of its subtree in the
	// preorder, and the weight of arcs out of the subtree minus the weight of arcs into it.
	preorder            []int
	parent, first, last []int
	net                 []int
	own                 []int // by node: weight of outgoing arcs minus weight of incoming arcs
}

// pivotCandidates is the number of improving arcs among which the best is chosen. More
// candidates give better pivots, fewer are faster. Graphviz uses 30.
const pivotCandidates = 30

// solve returns the ranks; the smallest is 0. It stops after the given number of pivots. Then
// the ranks satisfy every arc but may not have the least cost.
func solve(nodes int, arcs []arc, pivots int) []int {
	if nodes == 0 {
		return nil
	}
	s := &simplex{
		arcs: arcs, near: make([][]int, nodes), rank: earliest(nodes, arcs),
		inTree: make([]bool, len(arcs)), tree: make([][]int, nodes),
		preorder: make([]int, 0, nodes), parent: make([]int, nodes),
		first: make([]int, nodes), last: make([]int, nodes),
		net: make([]int, nodes), own: make([]int, nodes),
	}
	for i, a := range arcs {
		s.near[a.tail] = append(s.near[a.tail], i)
		s.near[a.head] = append(s.near[a.head], i)
		s.own[a.tail] += a.weight
		s.own[a.head] -= a.weight
	}
	s.grow()
	s.walk()
	for at := 0; pivots > 0; pivots-- {
		leave := s.leaving(&at)
		if leave < 0 {
			break
		}
		s.pivot(leave)
	}
	low := s.rank[0]
	for _, r := range s.rank {
		low = min(low, r)
	}
	for i := range s.rank {
		s.rank[i] -= low
	}
	return s.rank
}

func (s *simplex) slack(i int) int {
	a := s.arcs[i]
	return s.rank[a.head] - s.rank[a.tail] - a.least
}

// earliest gives each node the least rank that its incoming arcs allow.
func earliest(nodes int, arcs []arc) []int {
	rank := make([]int, nodes)
	waits := make([]int, nodes)
	out := make([][]int, nodes)
	for i, a := range arcs {
		waits[a.head]++
		out[a.tail] = append(out[a.tail], i)
	}
	var ready []int
	for v, n := range waits {
		if n == 0 {
			ready = append(ready, v)
		}
	}
	for len(ready) > 0 {
		v := ready[0]
		ready = ready[1:]
		for _, i := range out[v] {
			a := arcs[i]
			rank[a.head] = max(rank[a.head], rank[v]+a.least)
			if waits[a.head]--; waits[a.head] == 0 {
				ready = append(ready, a.head)
			}
		}
	}
	return rank
}

// grow makes a spanning tree of arcs without slack. If no such arc leads out of the tree, it
// shifts the tree.
func (s *simplex) grow() {
	in := make([]bool, len(s.near))
	members := []int{0}
	in[0] = true
	next := 0
	for {
		for ; next < len(members); next++ {
			v := members[next]
			for _, i := range s.near[v] {
				w := s.other(i, v)
				if !in[w] && s.slack(i) == 0 {
					in[w] = true
					members = append(members, w)
					s.addToTree(i)
				}
			}
		}
		best, bestSlack := -1, 0
		for i, a := range s.arcs {
			if in[a.tail] != in[a.head] {
				if d := s.slack(i); best < 0 || d < bestSlack {
					best, bestSlack = i, d
				}
			}
		}
		if best < 0 {
			return
		}
		if in[s.arcs[best].head] {
			bestSlack = -bestSlack
		}
		for _, v := range members {
			s.rank[v] += bestSlack
		}
		w := s.arcs[best].tail
		if in[w] {
			w = s.arcs[best].head
		}
		in[w] = true
		members = append(members, w)
		s.addToTree(best)
	}
}

func (s *simplex) other(i, v int) int {
	if s.arcs[i].tail == v {
		return s.arcs[i].head
	}
	return s.arcs[i].tail
}

func (s *simplex) addToTree(i int) {
	s.inTree[i] = true
	s.tree[s.arcs[i].tail] = append(s.tree[s.arcs[i].tail], i)
	s.tree[s.arcs[i].head] = append(s.tree[s.arcs[i].head], i)
}

func (s *simplex) removeFromTree(i int) {
	s.inTree[i] = false
	for _, v := range []int{s.arcs[i].tail, s.arcs[i].head} {
		list := s.tree[v]
		for k, j := range list {
			if j == i {
				list[k] = list[len(list)-1]
				s.tree[v] = list[:len(list)-1]
				break
			}
		}
	}
}

// walk visits the tree from node 0 and computes the fields that depend on its shape.
func (s *simplex) walk() {
	s.preorder = s.preorder[:0]
	stack := []int{0}
	s.parent[0] = -1
	for len(stack) > 0 {
		v := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		s.first[v] = len(s.preorder)
		s.preorder = append(s.preorder, v)
		for _, i := range s.tree[v] {
			if i != s.parent[v] {
				w := s.other(i, v)
				s.parent[w] = i
				stack = append(stack, w)
			}
		}
	}
	copy(s.net, s.own)
	for k, v := range s.preorder {
		s.last[v] = k
	}
	for k := len(s.preorder) - 1; k > 0; k-- {
		v := s.preorder[k]
		up := s.other(s.parent[v], v)
		s.net[up] += s.net[v]
		s.last[up] = max(s.last[up], s.last[v])
	}
}

// leaving returns a child node whose tree arc should be replaced, or -1. It continues where
// the last search ended.
func (s *simplex) leaving(at *int) int {
	best, bestCut, found := -1, 0, 0
	for range s.parent {
		v := *at
		*at = (*at + 1) % len(s.parent)
		i := s.parent[v]
		if i < 0 {
			continue
		}
		// The cut value is the change of the cost for each additional unit of length of
		// the arc. Arcs inside the subtree cancel out, so it is the subtree's net weight.
		cut := s.net[v]
		if s.arcs[i].head == v {
			cut = -cut
		}
		if cut < bestCut {
			best, bestCut = v, cut
			found++
			if found == pivotCandidates {
				break
			}
		}
	}
	return best
}

// pivot replaces the arc above v by the arc with the least slack in the other direction
// between v's subtree and the rest. It moves the subtree by that slack.
func (s *simplex) pivot(v int) {
	leave := s.parent[v]
	outward := s.arcs[leave].tail == v
	within := func(w int) bool { return s.first[w] >= s.first[v] && s.first[w] <= s.last[v] }
	enter, least := -1, 0
	for _, w := range s.preorder[s.first[v] : s.last[v]+1] {
		for _, i := range s.near[w] {
			a := s.arcs[i]
			if (a.tail == w) == outward || within(s.other(i, w)) {
				continue
			}
			if d := s.slack(i); enter < 0 || d < least || d == least && i < enter {
				enter, least = i, d
			}
		}
	}
	if enter < 0 {
		// No arc bounds the subtree on that side. This cannot happen while all weights
		// are positive.
		return
	}
	if outward {
		least = -least
	}
	for _, w := range s.preorder[s.first[v] : s.last[v]+1] {
		s.rank[w] += least
	}
	s.removeFromTree(leave)
	s.addToTree(enter)
	s.walk()
}
