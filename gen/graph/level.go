package graph

// extent is the space that a part needs: along the flow, and across the flow on both sides of
// its axis. The axis is the line on which edges meet the part.
type extent struct{ along, before, after int }

type kind int

const (
	box   kind = iota // a node
	label             // the text of an edge
	bend              // where an edge passes a level
)

// vertex is an element of a level.
type vertex struct {
	kind  kind
	node  int // node of a box, else -1
	edge  int // edge of a label or bend, else -1
	level int
	extent
	small bool // a timer: keeps its measured size, and needs less space
	stack int  // the part of along for cards behind the front of a box
	axis  int  // its position across the flow
}

type side int

const (
	through  side = iota // from a level to the next
	turnNext             // both ends in one level, turning in the gap after it
	turnPrev             // both ends in one level, turning in the gap before it
)

// link is the part of an edge that lies in one gap. Gap k is before level k;
// the last gap is after the last level.
type link struct {
	side     side
	gap      int
	from, to int // vertices; of a through link, from is in the earlier level
	// Positions at its ends, across the flow and relative to their axes.
	fromPort, toPort int
	lane             int // its position along the flow, within the gap
}

// step is a link with the direction in which its edge passes it.
type step struct {
	link     int
	reversed bool
}

// sketch is the layout of one connected part of a graph.
type sketch struct {
	vertices []vertex
	levels   [][]int // vertices in their order across the flow
	links    []link
	routes   map[int][]step // by edge
	back     map[int]bool   // edges that run against the flow
}

// levelPivots bounds the search for short edges. Pictures of a usual size need some hundred
// pivots.
const levelPivots = 5000

// offMiddle is the cost of half a level of distance from the middle, in pixels of crowd.
const offMiddle = 10

// newSketch puts nodes on levels: boxes on even ones, and on odd ones the
// labels between them.
func newSketch(d *diagram, nodes, edges []int) *sketch {
	local := make(map[int]int, len(nodes))
	for i, n := range nodes {
		local[n] = i
	}
	ends := make([][2]int, len(edges))
	for i, e := range edges {
		ends[i] = [2]int{local[d.edges[e].From], local[d.edges[e].To]}
	}
	arcs, back := flow(len(nodes), ends)
	rank := solve(len(nodes), arcs, levelPivots)
	spread(rank, arcs)
	s := &sketch{routes: make(map[int][]step), back: make(map[int]bool)}
	for i, n := range nodes {
		s.add(vertex{kind: box, node: n, edge: -1, level: 2 * rank[i], extent: d.nodes[n], small: d.small[n], stack: d.stacks[n]})
	}
	if d.direction == rightward {
		s.align()
	}
	crowd := make(map[int]int)
	for i, e := range edges {
		if from, to := rank[ends[i][0]], rank[ends[i][1]]; !back[i] && to == from+1 {
			crowd[2*from+1] += d.labels[e].before + d.labels[e].after
		}
	}
	for i, e := range edges {
		if back[i] {
			s.back[e] = true
			s.addBack(d, e, ends[i][0], ends[i][1])
		} else {
			s.addForward(d, e, ends[i][0], ends[i][1], crowd)
		}
	}
	return s
}

// flow returns the constraints of the edges on the ranks of their ends, and which edges run
// against the flow.
func flow(nodes int, ends [][2]int) ([]arc, []bool) {
	back := against(nodes, ends)
	var arcs []arc
	for i, e := range ends {
		switch {
		case e[0] == e[1]:
		case back[i]:
			arcs = append(arcs, arc{tail: e[1], head: e[0], least: 1, weight: 1})
		default:
			arcs = append(arcs, arc{tail: e[0], head: e[1], least: 1, weight: 2})
		}
	}
	return arcs, back
}

// align makes the boxes of a column equally wide, except for timers.
func (s *sketch) align() {
	for _, level := range s.levels {
		widest := 0
		for _, v := range level {
			widest = max(widest, s.vertices[v].along-s.vertices[v].stack)
		}
		for _, v := range level {
			if !s.vertices[v].small {
				s.vertices[v].along = widest + s.vertices[v].stack
			}
		}
	}
}

// shape estimates the number of ranks of a graph, and the number of nodes in the fullest
// rank.
func shape(nodes int, ends [][2]int) (ranks, fullest int) {
	arcs, _ := flow(nodes, ends)
	full := make(map[int]int)
	for _, r := range earliest(nodes, arcs) {
		full[r]++
		ranks = max(ranks, r+1)
		fullest = max(fullest, full[r])
	}
	return ranks, fullest
}

// spread moves nodes that cost the same on several ranks to the emptiest of these ranks.
func spread(rank []int, arcs []arc) {
	net := make([]int, len(rank))
	crowd := make(map[int]int)
	last := 0
	for _, r := range rank {
		crowd[r]++
		last = max(last, r)
	}
	near := make([][]arc, len(rank))
	for _, a := range arcs {
		near[a.tail] = append(near[a.tail], a)
		near[a.head] = append(near[a.head], a)
		net[a.tail] += a.weight
		net[a.head] -= a.weight
	}
	for v, r := range rank {
		if net[v] != 0 || len(near[v]) == 0 {
			continue
		}
		lo, hi := 0, last
		for _, a := range near[v] {
			if a.head == v {
				lo = max(lo, rank[a.tail]+a.least)
			} else {
				hi = min(hi, rank[a.head]-a.least)
			}
		}
		best := r
		for k := lo; k <= hi; k++ {
			if crowd[k] < crowd[best]-1 {
				best = k
			}
		}
		crowd[r]--
		crowd[best]++
		rank[v] = best
	}
}

func (s *sketch) add(v vertex) int {
	for len(s.levels) <= v.level {
		s.levels = append(s.levels, nil)
	}
	s.vertices = append(s.vertices, v)
	id := len(s.vertices) - 1
	s.levels[v.level] = append(s.levels[v.level], id)
	return id
}

func (s *sketch) connect(e int, l link, reversed bool) {
	s.links = append(s.links, l)
	s.routes[e] = append(s.routes[e], step{len(s.links) - 1, reversed})
}

// pass adds the vertex of edge e in a level that the edge passes.
func (s *sketch) pass(d *diagram, e, level int, labelled bool) int {
	v := vertex{kind: bend, node: -1, edge: e, level: level}
	if labelled && d.labels[e] != (extent{}) {
		v.kind, v.extent = label, d.labels[e]
	}
	return s.add(v)
}

// addForward routes an edge from a box to a box on a later level. Its label goes to a level
// with space between the boxes, preferably near the middle. crowd is the size of each
// level's contents.
func (s *sketch) addForward(d *diagram, e, from, to int, crowd map[int]int) {
	first, last := s.vertices[from].level+1, s.vertices[to].level-1
	middle, least := first, -1
	for k := first; k <= last; k += 2 {
		off := max(2*k-first-last, first+last-2*k)
		if c := crowd[k] + off*offMiddle; least < 0 || c < least {
			middle, least = k, c
		}
	}
	if first < last {
		crowd[middle] += d.labels[e].before + d.labels[e].after
	}
	at := from
	for k := first; k <= last; k++ {
		v := s.pass(d, e, k, k == middle)
		s.connect(e, link{gap: k, from: at, to: v}, false)
		at = v
	}
	s.connect(e, link{gap: last + 1, from: at, to: to}, false)
}

// addBack routes an edge to a box on the same or an earlier level. The edge leaves forwards,
// runs back along the levels, and enters forwards.
func (s *sketch) addBack(d *diagram, e, from, to int) {
	first, last := s.vertices[from].level, s.vertices[to].level
	middle := (first + last) / 2
	at := s.pass(d, e, first, first == middle)
	s.connect(e, link{side: turnNext, gap: first + 1, from: from, to: at}, false)
	for k := first - 1; k >= last; k-- {
		v := s.pass(d, e, k, k == middle)
		s.connect(e, link{gap: k + 1, from: v, to: at}, true)
		at = v
	}
	s.connect(e, link{side: turnPrev, gap: last, from: at, to: to}, false)
}
