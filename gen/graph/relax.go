package graph

import (
	"cmp"
	"slices"
)

// pull is the best position of a vertex for one of its neighbours, with a weight.
type pull struct{ at, weight int }

// relax places the vertices of large pictures. It sweeps over the levels and puts each
// vertex as near as the order allows to its neighbours in the previous level or, on the way
// back, in the next level. It minimizes distances, not their squares. So most lines are
// straight and a few have large bends, instead of small bends in all lines.
func (s *sketch) relax(weight []int) {
	before := make([][]int, len(s.vertices)) // by vertex: links from the level before
	after := make([][]int, len(s.vertices))
	for i := range s.links {
		if l := &s.links[i]; l.side == through {
			after[l.from] = append(after[l.from], i)
			before[l.to] = append(before[l.to], i)
		}
	}
	for k := range s.levels {
		s.relaxLevel(s.levels[k], func(int) []pull { return nil })
	}
	for turn := range min(relaxSweeps, 2+relaxEffort/(len(s.links)+1)) {
		for i := range s.levels {
			k, factor := i, [2]int{4, 1}
			if turn%2 == 1 {
				k, factor = len(s.levels)-1-i, [2]int{1, 4}
			}
			s.relaxLevel(s.levels[k], func(v int) []pull {
				var pulls []pull
				for _, i := range before[v] {
					pulls = append(pulls, pull{s.vertices[v].axis - s.jog(&s.links[i]), weight[i] * factor[0]})
				}
				for _, i := range after[v] {
					pulls = append(pulls, pull{s.vertices[v].axis + s.jog(&s.links[i]), weight[i] * factor[1]})
				}
				return pulls
			})
		}
	}
}

// relaxLevel places the vertices of a level at the least total distance from their pulls. A
// vertex without pulls keeps its position if possible.
func (s *sketch) relaxLevel(level []int, pulls func(v int) []pull) {
	// After subtracting the space of the vertices before it, a vertex may be anywhere
	// from the position of its predecessor on.
	offset := 0
	offsets := make([]int, len(level))
	wants := make([][]pull, len(level))
	for i, v := range level {
		if i > 0 {
			offset += s.room(level[i-1], v)
		}
		offsets[i] = offset
		wants[i] = pulls(v)
		for k := range wants[i] {
			wants[i][k].at -= offset
		}
		if len(wants[i]) == 0 {
			wants[i] = []pull{{s.vertices[v].axis - offset, 1}}
		}
	}
	for i, at := range monotone(wants) {
		s.vertices[level[i]].axis = at + offsets[i]
	}
}

// monotone returns the non-decreasing sequence with the least total distance from the pulls
// of its members (isotonic regression by pooling adjacent violators, with medians).
func monotone(wants [][]pull) []int {
	type pool struct {
		pulls  []pull // sorted
		median int
		size   int
	}
	var pools []pool
	for _, pulls := range wants {
		slices.SortFunc(pulls, comparePulls)
		pools = append(pools, pool{pulls, median(pulls), 1})
		for n := len(pools); n > 1 && pools[n-2].median > pools[n-1].median; n = len(pools) {
			a, b := pools[n-2], pools[n-1]
			both := thin(mergePulls(a.pulls, b.pulls))
			pools = append(pools[:n-2], pool{both, median(both), a.size + b.size})
		}
	}
	var at []int
	for _, p := range pools {
		for range p.size {
			at = append(at, p.median)
		}
	}
	return at
}

// mergePulls merges two sorted lists.
func mergePulls(a, b []pull) []pull {
	both := make([]pull, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if comparePulls(b[0], a[0]) < 0 {
			a, b = b, a
		}
		both = append(both, a[0])
		a = a[1:]
	}
	return append(append(both, a...), b...)
}

// pullsMax bounds the number of pulls of a pool. Pictures of a usual size have fewer. Without
// the bound, a star with thousands of edges would merge all pulls again for each member.
const pullsMax = 512

// thin joins neighbouring pulls if there are too many. The median moves by less than one part
// in pullsMax.
func thin(pulls []pull) []pull {
	if len(pulls) <= pullsMax {
		return pulls
	}
	total := 0
	for _, p := range pulls {
		total += p.weight
	}
	few := pulls[:1]
	for _, p := range pulls[1:] {
		if last := &few[len(few)-1]; (last.weight+p.weight)*pullsMax <= 2*total {
			last.weight += p.weight
		} else {
			few = append(few, p)
		}
	}
	return few
}

func comparePulls(a, b pull) int {
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.weight, b.weight))
}

// median returns the weighted lower median of sorted pulls.
func median(pulls []pull) int {
	total := 0
	for _, p := range pulls {
		total += p.weight
	}
	sum := 0
	for _, p := range pulls {
		if sum += p.weight; 2*sum >= total {
			return p.at
		}
	}
	return 0
}
