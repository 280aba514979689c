package graph

import (
	"cmp"
	"slices"
)

// Distances at one side of a box, in pixels.
const (
	portPitch = 16 // between two edges, usually
	portLeast = 12 // between two edges, if that saves a bend: one and a half arrowheads
	portRoom  = 12 // from a box's corner to its first edge
)

// ports distributes the edges on both sides of each box, in the order of their other ends, and
// makes the box large enough.
func (s *sketch) ports() {
	pos := make([]int, len(s.vertices))
	for _, level := range s.levels {
		for i, v := range level {
			pos[v] = i
		}
	}
	type end struct {
		port *int
		key  [3]int
	}
	out := make(map[int][]end)
	in := make(map[int][]end)
	for i := range s.links {
		l := &s.links[i]
		switch l.side {
		case through:
			out[l.from] = append(out[l.from], end{&l.fromPort, [3]int{0, pos[l.to], i}})
			in[l.to] = append(in[l.to], end{&l.toPort, [3]int{0, pos[l.from], i}})
		case turnNext:
			out[l.from] = append(out[l.from], end{&l.fromPort, turnKey(pos[l.from], pos[l.to], i)})
		case turnPrev:
			in[l.to] = append(in[l.to], end{&l.toPort, turnKey(pos[l.to], pos[l.from], i)})
		}
	}
	for v := range s.vertices {
		if s.vertices[v].kind != box {
			continue
		}
		for _, ends := range [][]end{out[v], in[v]} {
			slices.SortFunc(ends, func(a, b end) int { return slices.Compare(a.key[:], b.key[:]) })
			for k, e := range ends {
				*e.port = (2*k - len(ends) + 1) * portPitch / 2
			}
			half := (len(ends)-1)*portPitch/2 + portRoom
			s.vertices[v].before = max(s.vertices[v].before, half)
			s.vertices[v].after = max(s.vertices[v].after, half)
		}
	}
}

// turnKey orders turns outside of all straight links, so that each turn encloses the turns
// with nearer ends.
func turnKey(own, turn, link int) [3]int {
	if turn < own {
		return [3]int{-1, -turn, link}
	}
	return [3]int{1, -turn, link}
}

// settle moves edges along the sides of their boxes if that makes them straight, because a
// bend of a few pixels looks like a mistake.
func (s *sketch) settle() {
	type end struct {
		port   *int
		target int
		fixed  bool
	}
	sides := make(map[[2]int][]*end) // by box and side
	for i := range s.links {
		l := &s.links[i]
		from, to := &s.vertices[l.from], &s.vertices[l.to]
		if from.kind == box {
			sides[[2]int{l.from, 1}] = append(sides[[2]int{l.from, 1}], &end{port: &l.fromPort, target: to.axis - from.axis, fixed: l.side != through})
		}
		if to.kind == box {
			sides[[2]int{l.to, 0}] = append(sides[[2]int{l.to, 0}], &end{port: &l.toPort, target: from.axis - to.axis, fixed: l.side != through})
		}
	}
	for at, ends := range sides {
		v := &s.vertices[at[0]]
		slices.SortFunc(ends, func(a, b *end) int { return *a.port - *b.port })
		// bounds returns the positions that the settled ends leave for the k-th end.
		settled := make([]bool, len(ends))
		bounds := func(k int) (low, high int) {
			low, high = portRoom-v.before+k*portLeast, v.after-portRoom-(len(ends)-1-k)*portLeast
			for i, e := range ends {
				switch {
				case settled[i] && i < k:
					low = max(low, *e.port+(k-i)*portLeast)
				case settled[i] && i > k:
					high = min(high, *e.port-(i-k)*portLeast)
				}
			}
			return low, high
		}
		byGap := make([]int, len(ends))
		for k := range byGap {
			byGap[k] = k
		}
		jog := func(k int) int { return max(ends[k].target-*ends[k].port, *ends[k].port-ends[k].target) }
		slices.SortStableFunc(byGap, func(a, b int) int { return cmp.Compare(jog(a), jog(b)) })
		for _, k := range byGap {
			low, high := bounds(k)
			if t := ends[k].target; !ends[k].fixed && low <= t && t <= high {
				*ends[k].port, settled[k] = t, true
			}
		}
		for k, e := range ends {
			if !settled[k] {
				low, high := bounds(k)
				*e.port, settled[k] = min(max(*e.port, low), high), true
			}
		}
	}
}
