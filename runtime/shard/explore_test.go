package shard

import (
	"fmt"
	"slices"
	"strings"
)

// move is one atomic step of a worker, and the state that it leads to.
type move[S comparable] struct {
	name string
	to   S
}

// explorer visits all reachable states of a system.
type explorer[S comparable] struct {
	start      S
	successors func(S) ([]move[S], error) // all possible next steps, in any order
	holds      func(S) error              // checks the invariants of a state
	ends       func(S) bool               // reports whether all workers have reached the end
}

// explore returns the number of states. Its error contains the shortest history that
// leads to a state that violates an invariant, or to a state from which the end cannot be
// reached.
func (x *explorer[S]) explore() (int, error) {
	type visit struct {
		state S
		from  int // the index of the state before it; -1 for the start
		name  string
	}
	visits := []visit{{x.start, -1, "start"}}
	numbers := map[S]int{x.start: 0}
	var back [][]int32 // for each state, the states that lead to it
	back = append(back, nil)
	history := func(i int, err error) error {
		var lines []string
		for ; i >= 0; i = visits[i].from {
			lines = append(lines, fmt.Sprintf("%-28s %v", visits[i].name, visits[i].state))
		}
		slices.Reverse(lines)
		return fmt.Errorf("%w\n%s", err, strings.Join(lines, "\n"))
	}
	var reached []int32 // the states from which the end can be reached
	for i := 0; i < len(visits); i++ {
		state := visits[i].state
		if err := x.holds(state); err != nil {
			return len(visits), history(i, err)
		}
		if x.ends(state) {
			reached = append(reached, int32(i))
		}
		list, err := x.successors(state)
		if err != nil {
			return len(visits), history(i, err)
		}
		for _, m := range list {
			n, known := numbers[m.to]
			if !known {
				n = len(visits)
				numbers[m.to] = n
				visits = append(visits, visit{m.to, i, m.name})
				back = append(back, nil)
			}
			back[n] = append(back[n], int32(i))
		}
	}
	live := make([]bool, len(visits))
	for _, i := range reached {
		live[i] = true
	}
	for len(reached) > 0 {
		i := reached[len(reached)-1]
		reached = reached[:len(reached)-1]
		for _, from := range back[i] {
			if !live[from] {
				live[from] = true
				reached = append(reached, from)
			}
		}
	}
	if i := slices.Index(live, false); i >= 0 {
		return len(visits), history(i, fmt.Errorf("the end cannot be reached from this state"))
	}
	return len(visits), nil
}
