package graph

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/topogen/topogen/internal/test/speed"
)

// TestSolveIsOptimal compares with every ranking of small graphs.
func TestSolveIsOptimal(t *testing.T) {
	speed.Checks(t, 40, 100, 1000)
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "nodes")
		var arcs []arc
		draw := func(tail, head int) {
			arcs = append(arcs, arc{tail, head, rapid.IntRange(0, 2).Draw(t, "least"), rapid.IntRange(0, 3).Draw(t, "weight")})
		}
		for v := 1; v < n; v++ { // a tree, so that it is connected
			draw(rapid.IntRange(0, v-1).Draw(t, "tail"), v)
		}
		if n > 1 {
			for range rapid.IntRange(0, 4).Draw(t, "more") {
				head := rapid.IntRange(1, n-1).Draw(t, "head")
				draw(rapid.IntRange(0, head-1).Draw(t, "tail"), head)
			}
		}
		cost := func(rank []int) (sum int, ok bool) {
			for _, a := range arcs {
				d := rank[a.head] - rank[a.tail]
				if d < a.least {
					return 0, false
				}
				sum += a.weight * d
			}
			return sum, true
		}
		got, ok := cost(solve(n, arcs, 1000))
		if !ok {
			t.Fatalf("ranks %v break an arc", solve(n, arcs, 1000))
		}
		rank := make([]int, n)
		var try func(v int)
		try = func(v int) {
			if v == n {
				if c, ok := cost(rank); ok && c < got {
					t.Fatalf("solve costs %d, %v costs %d", got, rank, c)
				}
				return
			}
			for rank[v] = range 2*n - 1 {
				try(v + 1)
			}
		}
		try(0)
	})
}

func TestMonotoneIsNearest(t *testing.T) {
	speed.Checks(t, 40, 100, 1000)
	rapid.Check(t, func(t *rapid.T) {
		wants := make([][]pull, rapid.IntRange(1, 4).Draw(t, "length"))
		for i := range wants {
			for range rapid.IntRange(1, 3).Draw(t, "pulls") {
				wants[i] = append(wants[i], pull{rapid.IntRange(0, 4).Draw(t, "at"), rapid.IntRange(1, 3).Draw(t, "weight")})
			}
		}
		cost := func(at []int) int {
			sum := 0
			for i, pulls := range wants {
				for _, p := range pulls {
					sum += p.weight * max(p.at-at[i], at[i]-p.at)
				}
			}
			return sum
		}
		got := monotone(wants)
		at := make([]int, len(wants))
		var try func(i, low int)
		try = func(i, low int) {
			if i == len(at) {
				if cost(at) < cost(got) {
					t.Fatalf("%v for %v; %v is nearer", got, wants, at)
				}
				return
			}
			for at[i] = low; at[i] <= 4; at[i]++ {
				try(i+1, at[i])
			}
		}
		try(0, 0)
		for i := 1; i < len(got); i++ {
			if got[i] < got[i-1] {
				t.Fatalf("%v falls", got)
			}
		}
	})
}

func TestAgainstLeavesNoCycle(t *testing.T) {
	for seed := range uint64(50) {
		g := tangle(12, 30, seed)
		ends, _ := g.ends()
		back := against(len(g.Nodes), ends)
		waits := make([]int, len(g.Nodes))
		for i, e := range ends {
			if !back[i] {
				waits[e[1]]++
			}
		}
		left := len(g.Nodes)
		for progress := true; progress; {
			progress = false
			for v := range waits {
				if waits[v] != 0 {
					continue
				}
				waits[v] = -1
				left--
				progress = true
				for i, e := range ends {
					if !back[i] && e[0] == v {
						waits[e[1]]--
					}
				}
			}
		}
		if left > 0 {
			t.Errorf("seed %d: %d nodes in cycles", seed, left)
		}
	}
}
