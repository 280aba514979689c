package graph

import (
	"cmp"
	"slices"
)

// Distances along the flow in a gap, in pixels.
const (
	trackPitch = 12 // between two lines that run across
	leaveRoom  = 16 // from a box or label to the first line
	enterRoom  = 22 // from the last line to a box: an arrowhead and some line
	clearRoom  = 12 // from the last line to a label
	// collinear is the distance below which two lines along the flow look like one.
	collinear = 6
)

// wire is the part of a link that runs across the flow.
type wire struct {
	link      int
	low, high int
	// Positions at which lines along the flow meet the wire, from the level before and
	// from the level after. A turn has two positions on one side.
	before, after []int
}

// tracks gives every link of a gap its lane, and returns the number of lanes. Wires that
// would touch get different lanes, in an order with few crossings.
func (s *sketch) tracks(gap []int) int {
	var wires []wire
	for _, i := range gap {
		l := &s.links[i]
		a, b := s.vertices[l.from].axis+l.fromPort, s.vertices[l.to].axis+l.toPort
		if a == b {
			continue // straight
		}
		w := wire{link: i, low: min(a, b), high: max(a, b)}
		switch l.side {
		case through:
			w.before, w.after = []int{a}, []int{b}
		case turnNext:
			w.before = []int{a, b}
		case turnPrev:
			w.after = []int{a, b}
		}
		wires = append(wires, w)
	}
	slices.SortStableFunc(wires, func(a, b wire) int {
		return cmp.Or(heading(a)-heading(b), slope(a)-slope(b))
	})
	improve(wires)
	lanes := 0
	lane := make([]int, len(wires))
	for i := range wires {
		for j := range i {
			if wires[i].meets(&wires[j]) {
				lane[i] = max(lane[i], lane[j]+1)
			}
		}
		s.links[wires[i].link].lane = lane[i]
		lanes = max(lanes, lane[i]+1)
	}
	return lanes
}

// heading orders turns next to their level.
func heading(w wire) int { return len(w.after) - len(w.before) }

// slope orders parallel wires so that they do not cross: rising wires from top to bottom,
// falling wires from bottom to top.
func slope(w wire) int {
	switch {
	case heading(w) != 0:
		return (w.high - w.low) * -heading(w)
	case w.after[0] < w.before[0]:
		return w.before[0]
	default:
		return -w.before[0]
	}
}

// meets reports whether two wires need separate lanes.
func (w *wire) meets(x *wire) bool {
	return w.low < x.high+collinear*2 && x.low < w.high+collinear*2
}

// cost is the cost of giving w an earlier lane than x.
func (w *wire) cost(x *wire) int {
	const overlap = 20 // two lines that look like one cost as much as this number of crossings
	n := 0
	for _, a := range w.after {
		if x.low < a && a < x.high {
			n++
		}
		for _, b := range x.before {
			if d := a - b; -collinear < d && d < collinear {
				n += overlap
			}
		}
	}
	for _, b := range x.before {
		if w.low < b && b < w.high {
			n++
		}
	}
	return n
}

// improve moves each wire to the lane with the least cost, until no wire moves.
func improve(wires []wire) {
	const rounds = 6
	reach := min(improveReach, improveEffort/(len(wires)+1))
	for range rounds {
		moved := false
		for i := range wires {
			best, gain, sum := i, 0, 0
			for j := i - 1; j >= 0 && i-j <= reach; j-- {
				sum += wires[i].cost(&wires[j]) - wires[j].cost(&wires[i])
				if sum < gain {
					best, gain = j, sum
				}
			}
			sum = 0
			for j := i + 1; j < len(wires) && j-i <= reach; j++ {
				sum += wires[j].cost(&wires[i]) - wires[i].cost(&wires[j])
				if sum < gain {
					best, gain = j, sum
				}
			}
			if best != i {
				w := wires[i]
				wires = slices.Delete(wires, i, i+1)
				wires = slices.Insert(wires, best, w)
				moved = true
			}
		}
		if !moved {
			return
		}
	}
}

// Bounds on the moves of a wire, and of all wires in a gap. Gaps of readable pictures have
// fewer wires.
const (
	improveReach  = 100
	improveEffort = 10_000
)
