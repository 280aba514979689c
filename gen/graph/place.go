package graph

import "slices"

// Distances across the flow between neighbours of a level, in pixels.
const (
	boxRoom   = 26 // between two boxes
	labelRoom = 12 // between a label and its neighbour
	bendRoom  = 14 // between two lines, and a line and a box
)

const (
	// placeMax is the number of vertices and links up to which the positions with
	// the fewest bends are searched. Larger pictures are relaxed instead, because the
	// time of the search grows with the square of the number.
	placeMax    = 2500
	placePivots = 20000
	placeRounds = 4       // rounds of straightening; small pictures seldom need the last
	relaxSweeps = 8       // more sweeps have no visible effect
	relaxEffort = 400_000 // total number of links in all sweeps after the first two
	shortBend   = 10      // pixels; a shorter bend looks like a mistake, because its radius is 8
)

// room is the minimum distance between the axes of neighbours in a level.
func (s *sketch) room(a, b int) int {
	v, w := &s.vertices[a], &s.vertices[b]
	between := bendRoom
	switch {
	case v.kind == box && w.kind == box && !v.small && !w.small:
		between = boxRoom
	case v.kind == label || w.kind == label:
		between = labelRoom
	}
	return v.after + between + w.before
}

// weight is the cost of a bend in a link. Bends in the middle of a long edge look worst.
func (s *sketch) weight(l *link) int {
	boxes := 0
	if s.vertices[l.from].kind == box {
		boxes++
	}
	if s.vertices[l.to].kind == box {
		boxes++
	}
	switch {
	case l.side != through:
		return 1
	case boxes == 0:
		return 8
	default:
		return 2
	}
}

// place gives every vertex its axis, and every edge its positions at its boxes.
func (s *sketch) place() {
	weight := make([]int, len(s.links))
	for i := range s.links {
		weight[i] = s.weight(&s.links[i])
	}
	if len(s.vertices)+len(s.links) > placeMax {
		s.relax(weight)
		s.settle()
	} else {
		for range min(placeRounds, 1+placeMax/(len(s.vertices)+len(s.links))) {
			s.balance(weight)
			s.settle()
			if !s.stiffen(weight) {
				break
			}
		}
	}
	low := 0
	for v := range s.vertices {
		low = min(low, s.vertices[v].axis-s.vertices[v].before)
	}
	for v := range s.vertices {
		s.vertices[v].axis -= low
	}
}

// balance places the vertices for the fewest bends. Usually several placements have the
// least cost, and the search ends at an asymmetric one. Therefore balance searches twice,
// once mirrored. The mean of both results has the same cost and keeps all distances.
func (s *sketch) balance(weight []int) {
	a, b := s.placement(weight, false), s.placement(weight, true)
	for v := range s.vertices {
		s.vertices[v].axis = (a[v] + b[v]) >> 1
	}
}

// stiffen increases the weight of links with a bend so short that it looks like a mistake,
// and reports whether there are any.
func (s *sketch) stiffen(weight []int) bool {
	found := false
	for i := range s.links {
		if d := s.jog(&s.links[i]); -shortBend < d && d < shortBend && d != 0 {
			weight[i] *= 8
			found = true
		}
	}
	return found
}

// jog is the distance that a link covers across the flow.
func (s *sketch) jog(l *link) int {
	return s.vertices[l.to].axis + l.toPort - s.vertices[l.from].axis - l.fromPort
}

func (s *sketch) placement(weight []int, mirrored bool) []int {
	sign := 1
	if mirrored {
		sign = -1
	}
	n := len(s.vertices)
	var arcs []arc
	for _, level := range s.levels {
		for i := 0; i+1 < len(level); i++ {
			a, b := level[i], level[i+1]
			room := s.room(a, b)
			if mirrored {
				a, b = b, a
			}
			arcs = append(arcs, arc{tail: a, head: b, least: room})
		}
	}
	for i := range s.links {
		l := &s.links[i]
		// A helper vertex before both ends pulls at both ends, so the cost is the distance
		// of the ends (Gansner et al., section 4.2).
		a, b := sign*l.fromPort, sign*l.toPort
		most := max(a, b)
		arcs = append(arcs,
			arc{tail: n, head: l.from, least: most - a, weight: weight[i]},
			arc{tail: n, head: l.to, least: most - b, weight: weight[i]})
		n++
	}
	at := solve(n, arcs, placePivots)[:len(s.vertices)]
	for v := range at {
		at[v] *= sign
	}
	// Both placements must begin at 0; otherwise their mean would shift the parts.
	if len(at) > 0 {
		low := slices.Min(at)
		for v := range at {
			at[v] -= low
		}
	}
	return at
}
