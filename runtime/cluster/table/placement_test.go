package table_test

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/cluster/table"
)

func spread(name string, instances int) table.Placement {
	return table.Placement{Processor: table.Processor{Name: name, Instances: instances}}
}

func TestInitialPlacement(t *testing.T) {
	fixed := table.Placement{Processor: table.Processor{Name: "audit", Instances: 2}, Kind: table.Fixed, Node: "n1"}
	every := table.Placement{Processor: table.Processor{Name: "probe", Instances: 2}, Kind: table.EveryNode}
	for name, c := range map[string]struct {
		list  []table.Placement
		nodes []string
		want  []table.Assign
	}{
		"one node":         {[]table.Placement{spread("a", 3)}, []string{"n1"}, []table.Assign{{"a", 0, 3, "n1"}}},
		"even":             {[]table.Placement{spread("a", 4)}, []string{"n2", "n1"}, []table.Assign{{"a", 0, 2, "n1"}, {"a", 2, 2, "n2"}}},
		"single ones":      {[]table.Placement{spread("a", 1), spread("b", 1), spread("c", 1)}, []string{"n1", "n2"}, []table.Assign{{"a", 0, 1, "n1"}, {"b", 0, 1, "n2"}, {"c", 0, 1, "n1"}}},
		"after fixed":      {[]table.Placement{spread("a", 1), fixed}, []string{"n1", "n2"}, []table.Assign{{"a", 0, 1, "n2"}, {"audit", 0, 2, "n1"}}},
		"every node":       {[]table.Placement{every, spread("a", 1)}, []string{"n1", "n2"}, []table.Assign{{"a", 0, 1, "n1"}}},
		"no instances":     {[]table.Placement{spread("a", 0)}, []string{"n1"}, nil},
		"node twice":       {[]table.Placement{spread("a", 2)}, []string{"n1", "n1"}, []table.Assign{{"a", 0, 2, "n1"}}},
		"fewer than nodes": {[]table.Placement{spread("a", 2)}, []string{"n3", "n1", "n2"}, []table.Assign{{"a", 0, 1, "n1"}, {"a", 1, 1, "n2"}}},
	} {
		got, err := table.Initial(c.list, c.nodes)
		if err != nil || cmp.Diff(got, c.want) != "" {
			t.Errorf("%s: got %v and the error %v, want %v", name, got, err, c.want)
		}
	}
	for name, c := range map[string]struct {
		list  []table.Placement
		nodes []string
	}{
		"no nodes":     {[]table.Placement{spread("a", 1)}, nil},
		"unknown node": {[]table.Placement{fixed}, []string{"n2"}},
		"negative":     {[]table.Placement{spread("a", -1)}, []string{"n2"}},
	} {
		if got, err := table.Initial(c.list, c.nodes); !errors.Is(err, table.ErrInvalid) {
			t.Errorf("%s: got %v and the error %v, want ErrInvalid", name, got, err)
		}
	}
}

// TestInitialPlacementIsEven checks the initial placement of random topologies.
func TestInitialPlacementIsEven(t *testing.T) {
	speed.Checks(t, 100, 100, 10_000)
	rapid.Check(t, func(t *rapid.T) {
		nodes := nodeNames(rapid.IntRange(1, 9).Draw(t, "nodes"))
		var list []table.Placement
		for i, n := range rapid.SliceOfN(rapid.IntRange(0, 20), 0, 8).Draw(t, "instances") {
			list = append(list, spread(fmt.Sprint("p", i), n))
		}
		assigns, err := table.Initial(list, nodes)
		if err != nil {
			t.Fatal(err)
		}
		shuffled := rapid.Permutation(nodes).Draw(t, "order")
		if again, _ := table.Initial(list, shuffled); cmp.Diff(assigns, again) != "" {
			t.Fatalf("the placement depends on the order of the nodes: %v and %v", assigns, again)
		}
		places := apply(t, placesOf(list), assigns)
		checkEven(t, places, nodes)
	})
}

// TestRebalanceIsEvenWithFewestMoves compares the moves of random placements with the
// fewest moves of all even placements.
func TestRebalanceIsEvenWithFewestMoves(t *testing.T) {
	speed.Checks(t, 100, 100, 1000)
	rapid.Check(t, func(t *rapid.T) {
		all := nodeNames(rapid.IntRange(1, 5).Draw(t, "all"))
		nodes := nodeNames(rapid.IntRange(1, 4).Draw(t, "nodes"))
		var places []table.Places
		for i, n := range rapid.SliceOfN(rapid.IntRange(0, 7), 1, 4).Draw(t, "instances") {
			owners := rapid.SliceOfN(rapid.SampledFrom(append([]string{""}, all...)), n, n).Draw(t, "owners")
			places = append(places, placesOn(fmt.Sprint("p", i), owners))
		}
		assigns, err := table.Rebalance(places, nodes)
		if err != nil {
			t.Fatal(err)
		}
		after := apply(t, places, assigns)
		checkEven(t, after, nodes)
		moves := 0
		for _, a := range assigns {
			moves += a.Count
		}
		if want := fewestMoves(places, nodes); moves != want {
			t.Fatalf("%d moves, but %d are enough: %v of %v to %v", moves, want, assigns, places, nodes)
		}
		if again, _ := table.Rebalance(after, nodes); len(again) > 0 {
			t.Fatalf("an even placement is changed again: %v", again)
		}
	})
}

func TestRebalanceWithManyNodes(t *testing.T) {
	nodes := nodeNames(300)
	var list []table.Placement
	for i := range 50 {
		list = append(list, spread(fmt.Sprint("p", i), 7*i))
	}
	assigns, err := table.Initial(list, nodes[:200])
	if err != nil {
		t.Fatal(err)
	}
	places := apply(t, placesOf(list), assigns)
	assigns, err = table.Rebalance(places, nodes)
	if err != nil {
		t.Fatal(err)
	}
	checkEven(t, apply(t, places, assigns), nodes)
}

func nodeNames(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("n%03d", i))
	}
	return names
}

func placesOf(list []table.Placement) (places []table.Places) {
	for _, p := range list {
		places = append(places, placesOn(p.Name, make([]string, p.Instances)))
	}
	return places
}

func placesOn(name string, owners []string) table.Places {
	p := table.Places{Processor: table.Processor{Name: name, Instances: len(owners)}}
	for i, owner := range owners {
		if n := len(p.Runs) - 1; n >= 0 && p.Runs[n].Node == owner {
			p.Runs[n].Count++
		} else {
			p.Runs = append(p.Runs, table.Run{First: i, Count: 1, Node: owner})
		}
	}
	return p
}

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// apply returns the places after assignments.
func apply(t failer, places []table.Places, assigns []table.Assign) (after []table.Places) {
	t.Helper()
	for _, p := range places {
		owners := ownersOf(p)
		for _, a := range assigns {
			if a.Processor != p.Name {
				continue
			}
			for i := a.First; i < a.First+a.Count; i++ {
				if owners[i] == a.Node {
					t.Fatalf("%s/%d moves to %s, where it is", a.Processor, i, a.Node)
				}
				owners[i] = a.Node
			}
		}
		after = append(after, placesOn(p.Name, owners))
	}
	return after
}

func ownersOf(p table.Places) (owners []string) {
	for _, r := range p.Runs {
		for range r.Count {
			owners = append(owners, r.Node)
		}
	}
	return owners
}

// checkEven checks that each processor, and the total, are even on the nodes.
func checkEven(t failer, places []table.Places, nodes []string) {
	t.Helper()
	total := map[string]int{}
	even := func(what string, counts map[string]int) {
		low, high := math.MaxInt, 0
		for _, n := range nodes {
			low, high = min(low, counts[n]), max(high, counts[n])
		}
		if high-low > 1 {
			t.Fatalf("%s is uneven: %v", what, counts)
		}
	}
	for _, p := range places {
		counts := map[string]int{}
		for i, owner := range ownersOf(p) {
			if !slices.Contains(nodes, owner) {
				t.Fatalf("%s/%d is on %q", p.Name, i, owner)
			}
			counts[owner]++
			total[owner]++
		}
		even(p.Name, counts)
	}
	even("the total", total)
}

// fewestMoves tries all even placements.
func fewestMoves(places []table.Places, nodes []string) int {
	best := math.MaxInt
	var try func(p int, loads []int, moves int)
	try = func(p int, loads []int, moves int) {
		if p == len(places) {
			if slices.Max(loads)-slices.Min(loads) <= 1 {
				best = min(best, moves)
			}
			return
		}
		k, n := places[p].Instances, len(nodes)
		have := map[string]int{}
		for _, owner := range ownersOf(places[p]) {
			have[owner]++
		}
		for extra := range 1 << n {
			if bits.OnesCount(uint(extra)) != k%n {
				continue
			}
			next, kept := slices.Clone(loads), 0
			for i, name := range nodes {
				target := k / n
				if extra>>i&1 == 1 {
					target++
					next[i]++
				}
				kept += min(target, have[name])
			}
			try(p+1, next, moves+k-kept)
		}
	}
	try(0, make([]int, len(nodes)), 0)
	return best
}

func BenchmarkRebalance(b *testing.B) {
	nodes := nodeNames(16)
	var list []table.Placement
	for i := range 100 {
		list = append(list, spread(fmt.Sprint("p", i), 1000+i))
	}
	assigns, err := table.Initial(list, nodes[:15])
	if err != nil {
		b.Fatal(err)
	}
	places := placesOf(list)
	for i := range places {
		owners := ownersOf(places[i])
		for _, a := range assigns {
			for k := a.First; a.Processor == places[i].Name && k < a.First+a.Count; k++ {
				owners[k] = a.Node
			}
		}
		places[i] = placesOn(places[i].Name, owners)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := table.Rebalance(places, nodes); err != nil {
			b.Fatal(err)
		}
	}
}
