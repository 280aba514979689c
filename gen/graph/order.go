package graph

import "slices"

const (
	// Limits on sweeps and rounds. In random graphs of up to 100 nodes, more did not find
	// fewer crossings. The total number of links in all sweeps is bounded too, so large
	// pictures have fewer sweeps.
	orderSweeps = 24
	orderEffort = 500_000
	swapRounds  = 8
	swapsMax    = 4000 // vertices up to which neighbours are swapped; the time grows with the square of a level
)

// ordering searches for the best order within each level.
type ordering struct {
	s          *sketch
	prev, next [][]int // by vertex: its neighbours in the previous and the next level
	mates      [][]int // by vertex: the other ends of turns, in its own level
	gaps       [][]int // by gap: its links
	pos        []int   // by vertex: its index in its level
}

// order orders the vertices of each level so that few links cross.
func (s *sketch) order() {
	n := len(s.vertices)
	o := &ordering{
		s: s, prev: make([][]int, n), next: make([][]int, n), mates: make([][]int, n),
		gaps: make([][]int, len(s.levels)+1), pos: make([]int, n),
	}
	for i, l := range s.links {
		o.gaps[l.gap] = append(o.gaps[l.gap], i)
		if l.side == through {
			o.next[l.from] = append(o.next[l.from], l.to)
			o.prev[l.to] = append(o.prev[l.to], l.from)
		} else {
			o.mates[l.from] = append(o.mates[l.from], l.to)
			o.mates[l.to] = append(o.mates[l.to], l.from)
		}
	}
	var best [][]int
	least := -1
	keep := func() {
		if c := o.crossings(); least < 0 || c < least {
			least = c
			best = clone(s.levels)
		}
	}
	sweeps := min(orderSweeps, 2+orderEffort/(len(s.links)+1))
	for _, start := range []func(){o.depthFirst, o.fileOrder} {
		start()
		keep()
		stale := 0
		for i := 0; i < sweeps && least > 0 && stale < 6; i++ {
			before := least
			o.sweep(i)
			keep()
			if n <= swapsMax {
				o.swap()
				keep()
			}
			if stale++; least < before {
				stale = 0
			}
		}
	}
	s.levels = best
}

func clone(levels [][]int) [][]int {
	c := make([][]int, len(levels))
	for k, level := range levels {
		c[k] = slices.Clone(level)
	}
	return c
}

func (o *ordering) number() {
	for _, level := range o.s.levels {
		for i, v := range level {
			o.pos[v] = i
		}
	}
}

// fileOrder starts from the order of nodes and edges.
func (o *ordering) fileOrder() {
	for _, level := range o.s.levels {
		slices.Sort(level)
	}
	o.number()
}

// depthFirst starts from the order in which a depth-first walk from the first box visits the
// vertices. This order draws a tree without crossings.
func (o *ordering) depthFirst() {
	for k := range o.s.levels {
		o.s.levels[k] = o.s.levels[k][:0]
	}
	seen := make([]bool, len(o.s.vertices))
	var stack []int
	for start := range o.s.vertices {
		stack = append(stack, start)
		for len(stack) > 0 {
			v := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if seen[v] {
				continue
			}
			seen[v] = true
			k := o.s.vertices[v].level
			o.s.levels[k] = append(o.s.levels[k], v)
			// The vertex that is pushed last is visited first.
			for _, list := range [][]int{o.prev[v], o.next[v], o.mates[v]} {
				for i := len(list) - 1; i >= 0; i-- {
					stack = append(stack, list[i])
				}
			}
		}
	}
	o.number()
}

// sweep orders each level by the mean position of its neighbours: in the previous level on
// even turns, in the next level on odd turns.
func (o *ordering) sweep(turn int) {
	levels := o.s.levels
	key := make([]int, len(o.s.vertices))
	for i := range levels {
		k := i
		near := o.prev
		if turn%2 == 1 {
			k, near = len(levels)-1-i, o.next
		}
		for _, v := range levels[k] {
			sum, n := 0, 0
			for _, w := range near[v] {
				sum += o.place(w)
				n++
			}
			// A turn must be next to its box, independent of its other end.
			for _, w := range o.mates[v] {
				sum += o.place(w)
				n++
			}
			if n == 0 {
				sum, n = o.place(v), 1
			}
			key[v] = sum / n
		}
		// On every other pair of sweeps equal keys are reversed, so that both
		// orders are tried.
		flip := turn%4 >= 2
		slices.SortStableFunc(levels[k], func(a, b int) int {
			if key[a] == key[b] && flip {
				return o.pos[b] - o.pos[a]
			}
			return key[a] - key[b]
		})
		for i, v := range levels[k] {
			o.pos[v] = i
		}
	}
}

// place is the relative position of a vertex in its level, 0 to 1<<20, so that levels of
// different sizes can be compared.
func (o *ordering) place(v int) int {
	return (2*o.pos[v] + 1) << 19 / len(o.s.levels[o.s.vertices[v].level])
}

// swap exchanges neighbours as long as this reduces the crossings.
func (o *ordering) swap() {
	for range swapRounds {
		better := false
		for _, level := range o.s.levels {
			for i := 0; i+1 < len(level); i++ {
				v, w := level[i], level[i+1]
				now := o.between(o.prev[v], o.prev[w]) + o.between(o.next[v], o.next[w])
				then := o.between(o.prev[w], o.prev[v]) + o.between(o.next[w], o.next[v])
				if then < now {
					level[i], level[i+1] = w, v
					o.pos[v], o.pos[w] = i+1, i
					better = true
				}
			}
		}
		if !better {
			return
		}
	}
}

// between counts the crossings between the links of a vertex and the links of the next
// vertex, on one side.
func (o *ordering) between(upper, lower []int) int {
	n := 0
	for _, a := range upper {
		for _, b := range lower {
			if o.pos[b] < o.pos[a] {
				n++
			}
		}
	}
	return n
}

// crossings counts the crossings of all links.
func (o *ordering) crossings() int {
	sum := 0
	for k, gap := range o.gaps {
		size := 0
		if k < len(o.s.levels) {
			size = len(o.s.levels[k])
		}
		sum += o.crossingsIn(gap, size)
	}
	return sum
}

func (o *ordering) crossingsIn(gap []int, size int) int {
	var straight, after, before [][2]int
	for _, i := range gap {
		l := o.s.links[i]
		p := [2]int{o.pos[l.from], o.pos[l.to]}
		switch l.side {
		case through:
			straight = append(straight, p)
		case turnNext:
			after = append(after, [2]int{min(p[0], p[1]), max(p[0], p[1])})
		case turnPrev:
			before = append(before, [2]int{min(p[0], p[1]), max(p[0], p[1])})
		}
	}
	n := inversions(straight, size)
	// A turn crosses links that end between its ends, and turns that overlap it partly.
	for end, turns := range [][][2]int{after, before} {
		for i, t := range turns {
			for _, p := range straight {
				if t[0] < p[end] && p[end] < t[1] {
					n++
				}
			}
			for _, u := range turns[:i] {
				if t[0] < u[0] && u[0] < t[1] && t[1] < u[1] || u[0] < t[0] && t[0] < u[1] && u[1] < t[1] {
					n++
				}
			}
		}
	}
	return n
}

// inversions counts the pairs whose order differs between the two sides, with a Fenwick tree
// over the positions on the second side.
func inversions(pairs [][2]int, size int) int {
	slices.SortFunc(pairs, func(a, b [2]int) int {
		if a[0] != b[0] {
			return a[0] - b[0]
		}
		return a[1] - b[1]
	})
	tree := make([]int, size+1)
	n := 0
	for seen, p := range pairs {
		lower := 0
		for i := p[1] + 1; i > 0; i &= i - 1 {
			lower += tree[i]
		}
		n += seen - lower
		for i := p[1] + 1; i <= size; i += i & -i {
			tree[i]++
		}
	}
	return n
}
