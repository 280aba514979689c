package table

import (
	"cmp"
	"fmt"
	"slices"
)

// PlacementKind is how the instances of a processor are placed.
type PlacementKind uint8

const (
	Spread    PlacementKind = iota // evenly over the nodes
	Fixed                          // all on one node
	EveryNode                      // on each node; its instances are not in the table
)

// Placement is the placement of a processor in the topology file.
type Placement struct {
	Processor
	Kind PlacementKind
	Node string // of Fixed
}

// Defined returns the processors whose instances are in the table.
func Defined(list []Placement) []Processor {
	var processors []Processor
	for _, p := range list {
		if p.Kind != EveryNode {
			processors = append(processors, p.Processor)
		}
	}
	return processors
}

// Initial returns the first placement of all instances on nodes. It is a pure function:
// the same arguments have the same result on each node of a cluster, whatever the order of
// nodes. Each spread processor has at most one instance more on one node than on another,
// in blocks of consecutive instances. The instances that remain go to the nodes that have
// the fewest instances so far. So without fixed processors the totals also differ by at
// most one.
func Initial(list []Placement, nodes []string) ([]Assign, error) {
	names := slices.Clone(nodes)
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) == 0 {
		return nil, fmt.Errorf("%w: a placement needs at least one node", ErrInvalid)
	}
	totals := make([]int, len(names))
	for _, p := range list {
		if p.Kind != Fixed {
			continue
		}
		at, found := slices.BinarySearch(names, p.Node)
		if !found {
			return nil, fmt.Errorf("%w: processor %q must be placed on one of the nodes %q, got %q", ErrInvalid, p.Name, names, p.Node)
		}
		totals[at] += p.Instances
	}
	var assigns []Assign
	for _, p := range list {
		switch {
		case p.Instances < 0 || p.Kind > EveryNode:
			return nil, fmt.Errorf("%w: processor %q has %d instances and placement %d", ErrInvalid, p.Name, p.Instances, p.Kind)
		case p.Kind == Fixed && p.Instances > 0:
			assigns = append(assigns, Assign{p.Name, 0, p.Instances, p.Node})
		case p.Kind == Spread:
			assigns = append(assigns, spread(p.Processor, names, totals)...)
		}
	}
	return assigns, nil
}

// spread places the instances of a processor, and adds them to totals.
func spread(p Processor, names []string, totals []int) (assigns []Assign) {
	counts := make([]int, len(names))
	for i := range counts {
		counts[i] = p.Instances / len(names)
	}
	for _, i := range fewest(totals)[:p.Instances%len(names)] {
		counts[i]++
	}
	first := 0
	for i, n := range counts {
		totals[i] += n
		if n > 0 {
			assigns = append(assigns, Assign{p.Name, first, n, names[i]})
			first += n
		}
	}
	return assigns
}

// fewest returns the indices of totals, the smallest total first.
func fewest(totals []int) []int {
	order := make([]int, len(totals))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(totals[a], totals[b]) })
	return order
}
