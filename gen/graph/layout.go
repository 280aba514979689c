package graph

import "slices"

type direction int

const (
	rightward direction = iota
	downward
)

// rect is a rectangle in pixels, from its top left corner.
type rect struct{ x, y, w, h int }

type point struct{ x, y int }

// layout has the positions of all parts. It is a pure function of a graph.
type layout struct {
	direction     direction
	width, height int
	boxes         []rect    // by node
	labels        []rect    // by edge; empty if an edge has no text
	anchors       []point   // by edge: where the line passes the middle of the label
	lines         [][]point // by edge, from source to target; nil for an omitted edge
	back          []bool    // by edge: runs against the flow
}

// diagram is a graph with the space that its parts need, in one direction.
type diagram struct {
	direction direction
	nodes     []extent
	small     []bool // by node: a timer
	stacks    []int  // by node: space along the flow for the cards behind its front
	edges     []Edge
	labels    []extent
}

// The page for pictures is as wide as a README on a screen, because wider pictures are shrunk.
// It is higher than the screen, because a reader can scroll.
const (
	pageWidth  = 1200
	pageHeight = 2400
	// bothMax is the number of nodes up to which both directions are tried. For more nodes
	// the widths of a common column and box decide.
	bothMax     = 150
	columnWidth = 270
	boxWidth    = 150
	// margin surrounds the picture, partRoom separates unconnected parts.
	margin   = 24
	partRoom = 36
)

// bendsMax bounds the total number of levels that the edges of a picture pass through. A
// readable picture has some hundred; a layout with a million takes minutes.
const bendsMax = 100_000

// Drawable reports whether SVG draws the graph within seconds. A graph that is not drawable
// has thousands of long edges, so its picture would be unreadable.
func (g Graph) Drawable() bool {
	ends, _ := g.ends()
	arcs, _ := flow(len(g.Nodes), ends)
	rank := earliest(len(g.Nodes), arcs)
	bends := 0
	for _, e := range ends {
		bends += max(rank[e[0]], rank[e[1]]) - min(rank[e[0]], rank[e[1]])
	}
	return bends <= bendsMax
}

// arrange lays a graph out in the direction in which it fits a page better.
func arrange(g Graph) layout {
	if len(g.Nodes) > bothMax {
		ends, _ := g.ends()
		ranks, fullest := shape(len(g.Nodes), ends)
		if ranks*columnWidth > fullest*boxWidth {
			return arrangeIn(g, downward)
		}
		return arrangeIn(g, rightward)
	}
	right := arrangeIn(g, rightward)
	down := arrangeIn(g, downward)
	// People read to the right, so down must be clearly better.
	if down.shrink()*4 < right.shrink()*3 {
		return down
	}
	return right
}

// shrink is the factor by which the picture is larger than a page, in thousandths; 1000: it fits.
func (l *layout) shrink() int {
	return max(1000, 1000*l.width/pageWidth, 1000*l.height/pageHeight)
}

func arrangeIn(g Graph, dir direction) layout {
	d := measure(g, dir)
	l := layout{
		direction: dir,
		boxes:     make([]rect, len(g.Nodes)),
		labels:    make([]rect, len(g.Edges)),
		anchors:   make([]point, len(g.Edges)),
		lines:     make([][]point, len(g.Edges)),
		back:      make([]bool, len(g.Edges)),
	}
	ends, drawn := g.ends()
	parts := components(len(g.Nodes), ends)
	partOf := make([]int, len(g.Nodes))
	for i, nodes := range parts {
		for _, n := range nodes {
			partOf[n] = i
		}
	}
	edges := make([][]int, len(parts))
	for _, e := range drawn {
		p := partOf[g.Edges[e].From]
		edges[p] = append(edges[p], e)
	}
	drawings := make([]*drawing, len(parts))
	for i, nodes := range parts {
		s := newSketch(d, nodes, edges[i])
		s.order()
		s.ports()
		s.place()
		drawings[i] = s.draw(dir)
	}
	l.width, l.height = pack(drawings)
	for _, dr := range drawings {
		dr.copyTo(&l)
	}
	return l
}

// pack puts the parts on shelves, in their order, and returns the size of the whole picture.
func pack(drawings []*drawing) (width, height int) {
	limit, area := 0, 0
	for _, d := range drawings {
		limit = max(limit, d.width)
		area += (d.width + partRoom) * (d.height + partRoom)
	}
	for limit*limit*2 < area*3 { // shelves of about 3:2
		limit += 1 + limit/8
	}
	x, y, shelf := 0, 0, 0
	for _, d := range drawings {
		if x > 0 && x+d.width > limit {
			x, y, shelf = 0, y+shelf+partRoom, 0
		}
		d.at = point{x + margin, y + margin}
		x += d.width + partRoom
		shelf = max(shelf, d.height)
		width = max(width, x-partRoom)
		height = max(height, y+shelf)
	}
	return width + 2*margin, height + 2*margin
}

// drawing is a connected part after layout, in pixels.
type drawing struct {
	at            point
	width, height int
	boxes         map[int]rect
	labels        map[int]rect
	anchors       map[int]point
	lines         map[int][]point
	back          map[int]bool
}

func (d *drawing) copyTo(l *layout) {
	move := func(r rect) rect { return rect{r.x + d.at.x, r.y + d.at.y, r.w, r.h} }
	for n, r := range d.boxes {
		l.boxes[n] = move(r)
	}
	for e, r := range d.labels {
		l.labels[e] = move(r)
		l.anchors[e] = point{d.anchors[e].x + d.at.x, d.anchors[e].y + d.at.y}
	}
	for e, line := range d.lines {
		l.back[e] = d.back[e]
		for _, p := range line {
			l.lines[e] = append(l.lines[e], point{p.x + d.at.x, p.y + d.at.y})
		}
	}
}

// draw decides the positions along the flow and turns them into pixels.
func (s *sketch) draw(dir direction) *drawing {
	gaps := make([][]int, len(s.levels)+1)
	for i, l := range s.links {
		gaps[l.gap] = append(gaps[l.gap], i)
	}
	start := make([]int, len(s.levels)) // position of each level along the flow
	depth := make([]int, len(s.levels))
	lane0 := make([]int, len(gaps)) // position of the first lane of each gap
	at := 0
	for k := range gaps {
		lanes := s.tracks(gaps[k])
		room := 0
		if lanes > 0 {
			room = (lanes - 1) * trackPitch
		}
		switch {
		case k == 0 && lanes == 0, k == len(s.levels) && lanes == 0:
		case k == 0:
			lane0[k] = at
			at += room + enterRoom
		case k == len(s.levels):
			lane0[k] = at + leaveRoom
			at += leaveRoom + room
		default:
			lane0[k] = at + leaveRoom
			at += leaveRoom + room + clearRoom
			if k%2 == 0 { // boxes are on even levels
				at += enterRoom - clearRoom
			}
		}
		if k < len(s.levels) {
			// Fronts are centred in their level, so cards behind one need room on
			// both sides.
			for _, v := range s.levels[k] {
				depth[k] = max(depth[k], s.vertices[v].along+s.vertices[v].stack)
			}
			start[k] = at
			at += depth[k]
		}
	}
	across := 0
	for i := range s.vertices {
		across = max(across, s.vertices[i].axis+s.vertices[i].after)
	}

	d := &drawing{
		width: at, height: across,
		boxes: make(map[int]rect), labels: make(map[int]rect), anchors: make(map[int]point),
		lines: make(map[int][]point), back: s.back,
	}
	pixel := func(along, across int) point { return point{along, across} }
	area := func(along, across, length, breadth int) rect { return rect{along, across, length, breadth} }
	if dir == downward {
		d.width, d.height = d.height, d.width
		pixel = func(along, across int) point { return point{across, along} }
		area = func(along, across, length, breadth int) rect { return rect{across, along, breadth, length} }
	}
	// first and last are the positions along the flow where edges enter and leave a box.
	first := func(v *vertex) int { return start[v.level] + (depth[v.level]-v.along+v.stack)/2 }
	last := func(v *vertex) int { return first(v) + v.along }
	for i := range s.vertices {
		v := &s.vertices[i]
		r := area(first(v), v.axis-v.before, v.along, v.before+v.after)
		switch v.kind {
		case box:
			d.boxes[v.node] = r
		case label:
			d.labels[v.edge] = r
			d.anchors[v.edge] = pixel(first(v)+v.along/2, v.axis)
		}
	}
	for e, route := range s.routes {
		var line []point
		for i, st := range route {
			l := &s.links[st.link]
			from, to := &s.vertices[l.from], &s.vertices[l.to]
			a, b := from.axis+l.fromPort, to.axis+l.toPort
			if st.reversed {
				a, b = b, a
			}
			if i == 0 {
				line = append(line, pixel(last(from), a))
			}
			if a != b {
				lane := lane0[l.gap] + l.lane*trackPitch
				line = append(line, pixel(lane, a), pixel(lane, b))
			}
			if i == len(route)-1 {
				line = append(line, pixel(first(to), b))
			}
		}
		d.lines[e] = straighten(line)
	}
	return d
}

// straighten drops the points between which a line does not bend.
func straighten(line []point) []point {
	return slices.Clip(slices.CompactFunc(line, func(a, b point) bool { return a == b }))
}
