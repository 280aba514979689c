package table

import (
	"fmt"
	"slices"
)

// exactNodes is the number of nodes up to which Rebalance finds the fewest moves for even
// totals. The search takes time with the cube of the number of nodes. With more nodes the
// totals are even, but some moves may be avoidable.
const exactNodes = 128

// Rebalance returns the assignments after which the spread processors are even on nodes.
// It is a pure function. places are the current places of the spread processors, for
// example from a [Snapshot]. Containers on other nodes, and containers without a place,
// are moved in any case.
//
// After the assignments, the numbers of instances of a processor on two nodes differ by at
// most one, and so do the numbers of all instances. Among all placements with this
// property, the result needs the fewest moves. Containers with the highest numbers move.
func Rebalance(places []Places, nodes []string) ([]Assign, error) {
	names := slices.Clone(nodes)
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) == 0 {
		return nil, fmt.Errorf("%w: a placement needs at least one node", ErrInvalid)
	}
	b := newBalance(places, names)
	if len(names) <= exactNodes {
		b.improve()
	}
	var assigns []Assign
	for p := range places {
		assigns = append(assigns, b.moves(&places[p], p)...)
	}
	return assigns, nil
}

// balance is the choice which nodes get one instance of a processor more than others.
//
// A processor with k instances has k/n of them on each of n nodes, and one more on k mod n
// nodes. A node that has more than k/n now saves a move if it is among these. So the
// number of moves depends only on this choice, and the search for the fewest moves is a
// minimum-cost flow: processors send k mod n units to different nodes. A unit costs 0 if it
// saves a move and 1 otherwise, and each node receives q or q+1 units in total.
type balance struct {
	names []string
	have  [][]int  // by processor and node
	base  []int    // by processor: k/n
	extra [][]bool // by processor and node: the node gets one more
	loads []int    // by node: number of processors for which it gets one more
	low   int      // q
}

func newBalance(places []Places, names []string) *balance {
	b := &balance{names: names, loads: make([]int, len(names))}
	sum := 0
	for i := range places {
		have := make([]int, len(names))
		for _, r := range places[i].Runs {
			if at, found := slices.BinarySearch(names, r.Node); found {
				have[at] += r.Count
			}
		}
		b.have = append(b.have, have)
		b.base = append(b.base, places[i].Instances/len(names))
		n := places[i].Instances % len(names)
		sum += n
		extra := make([]bool, len(names))
		for _, node := range b.first(have, b.base[i])[:n] {
			extra[node] = true
			b.loads[node]++
		}
		b.extra = append(b.extra, extra)
	}
	b.low = sum / len(names)
	return b
}

// first returns the nodes in the order in which they should get one more: nodes with a low
// load first, and among them nodes that save a move.
func (b *balance) first(have []int, base int) []int {
	keys := make([]int, len(have))
	for i := range keys {
		keys[i] = 2 * b.loads[i]
		if have[i] <= base {
			keys[i]++
		}
	}
	return fewest(keys)
}

// cost is the number of moves that an extra instance of a processor on a node costs.
func (b *balance) cost(p, node int) int {
	if b.have[p][node] > b.base[p] {
		return 0
	}
	return 1
}

// step moves the extra instance of a processor from one node to another.
type step struct{ processor, cost int }

const infinite = 1 << 30

// improve changes the choice until no cycle of changes saves a move. The choice then is
// optimal: a flow has the least cost if its residual network has no negative cycle. The
// vertices are the nodes, and the last vertex allows that one node gets more and another
// one less.
func (b *balance) improve() {
	n := len(b.names)
	edges := make([][]step, n+1)
	for u := range edges {
		edges[u] = make([]step, n+1)
	}
	for {
		b.residual(edges)
		cycle := negativeCycle(edges)
		if cycle == nil {
			return
		}
		for i, u := range cycle {
			v := cycle[(i+1)%len(cycle)]
			if u == n || v == n {
				continue
			}
			p := edges[u][v].processor
			b.extra[p][u], b.extra[p][v] = false, true
			b.loads[u]--
			b.loads[v]++
		}
	}
}

// residual sets the cheapest step from each node to each other node. Steps to and from the
// last vertex keep the loads at low or low+1: the first choice already has such loads.
func (b *balance) residual(edges [][]step) {
	n := len(b.names)
	for u := range n + 1 {
		for v := range n + 1 {
			edges[u][v] = step{-1, infinite}
		}
	}
	for p, extra := range b.extra {
		for u := range n {
			if !extra[u] {
				continue
			}
			for v := range n {
				if c := b.cost(p, v) - b.cost(p, u); !extra[v] && c < edges[u][v].cost {
					edges[u][v] = step{p, c}
				}
			}
		}
	}
	for v := range n {
		if b.loads[v] == b.low {
			edges[v][n].cost = 0 // v may get one more
		}
		if b.loads[v] > b.low {
			edges[n][v].cost = 0 // v may get one less
		}
	}
}

// negativeCycle returns the vertices of a cycle whose costs are below 0 in total, or nil
// (Bellman and Ford's algorithm).
func negativeCycle(edges [][]step) []int {
	n := len(edges)
	distance, before := make([]int, n), make([]int, n)
	last := -1
	for range n {
		last = -1
		for u := range n {
			for v := range n {
				if c := edges[u][v].cost; c < infinite && distance[u]+c < distance[v] {
					distance[v], before[v], last = distance[u]+c, u, v
				}
			}
		}
		if last < 0 {
			return nil
		}
	}
	for range n { // go back until the vertex is on the cycle
		last = before[last]
	}
	cycle := []int{last}
	for v := before[last]; v != last; v = before[v] {
		cycle = append(cycle, v)
	}
	slices.Reverse(cycle)
	return cycle
}

// moves returns the assignments for one processor.
func (b *balance) moves(p *Places, at int) (assigns []Assign) {
	room := make([]int, len(b.names)) // containers that a node may keep or get
	for node := range room {
		room[node] = b.base[at]
		if b.extra[at][node] {
			room[node]++
		}
	}
	var moving []int
	for _, r := range p.Runs {
		keep := 0
		if node, found := slices.BinarySearch(b.names, r.Node); found {
			keep = min(r.Count, room[node])
			room[node] -= keep
		}
		for i := r.First + keep; i < r.First+r.Count; i++ {
			moving = append(moving, i)
		}
	}
	node := 0
	for _, i := range moving {
		for room[node] == 0 {
			node++
		}
		room[node]--
		if n := len(assigns) - 1; n >= 0 && assigns[n].Node == b.names[node] && assigns[n].First+assigns[n].Count == i {
			assigns[n].Count++
		} else {
			assigns = append(assigns, Assign{p.Name, i, 1, b.names[node]})
		}
	}
	return assigns
}
