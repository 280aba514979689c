package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"
)

// change is a mutant of a list, or a disabled branch.
type change interface {
	id() (pkg, name string)
	inSample() bool
}

// choose returns the mutants that the flags select.
func choose[C change](all []C, o options, out io.Writer) []C {
	all = slices.DeleteFunc(all, func(c C) bool {
		_, name := c.id()
		return !o.name.MatchString(name) || o.sample > 0 && !c.inSample()
	})
	if o.sample == 0 {
		return all
	}
	if o.seed == 0 {
		o.seed = uint64(time.Now().UnixNano())
	}
	all = sample(all, o.sample, o.seed)
	fmt.Fprintf(out, "%d random mutants; repeat them with: -sample %d -seed %d\n", len(all), o.sample, o.seed)
	return all
}

// sample returns n random mutants: one of each package, then a second one of each, and so on.
func sample[C change](all []C, n int, seed uint64) (chosen []C) {
	random := rand.New(rand.NewPCG(seed, 0))
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	earlier := map[string]int{}    // the number of mutants of each package
	round := make([]int, len(all)) // the number of earlier mutants of the same package
	for i, c := range all {
		pkg, _ := c.id()
		round[i] = earlier[pkg]
		earlier[pkg]++
	}
	n = min(n, len(all))
	for k := 0; len(chosen) < n; k++ {
		for i, c := range all {
			if round[i] == k && len(chosen) < n {
				chosen = append(chosen, c)
			}
		}
	}
	return chosen
}
