package pairtests_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

const (
	rowsMin    = 60 // smallest number of topologies of an array
	candidates = 20 // number of choices of which the best becomes a row
	unset      = -1
)

// array builds a covering array: rows of values, such that each pair of values is in some row. It
// numbers the factors, and the values of all factors, in the order of the list factors.
type array struct {
	design
	random   *rand.Rand
	first    []int // the number of the first value of each factor
	excluded []excluded
	left     [][]bool // pairs of values that are not in a row yet; the value of the lower factor is first
	list     [][2]int // the same pairs, until trim with some that are in a row
}

// excluded is a refusal: for each of its factors, whether it contains each value.
type excluded map[int][]bool

// choice has the value of each factor, or unset.
type choice []int

// coveringArray returns rows that have each pair of options that topogen accepts at least once.
func (d design) coveringArray(t *testing.T, seed uint64) (rows []row) {
	t.Helper()
	a := newArray(d, seed)
	for a.trim() || len(rows) < d.rowsMin {
		var best choice
		most := -1
		for range candidates {
			if c, n := a.draw(); n > most {
				best, most = c, n
			}
		}
		if most < 0 || most == 0 && len(a.list) > 0 {
			t.Fatalf("no topology has both %s and %s, which topogen accepts according to refusals", a.name(a.list[0][0]), a.name(a.list[0][1]))
		}
		rows = append(rows, a.add(best))
	}
	return rows
}

func newArray(d design, seed uint64) *array {
	a := &array{design: d, random: rand.New(rand.NewPCG(seed, 1))}
	factors := d.factors
	total := 0
	for _, f := range factors {
		a.first = append(a.first, total)
		total += len(f.values)
	}
	for _, x := range d.refusals {
		a.excluded = append(a.excluded, d.numbered(x))
	}
	a.left = make([][]bool, total)
	for v := range a.left {
		a.left[v] = make([]bool, total)
	}
	for i, f := range factors {
		for j := i + 1; j < len(factors); j++ {
			for v := range f.values {
				for w := range factors[j].values {
					c := slices.Repeat(choice{unset}, len(factors))
					if c[i], c[j] = v, w; a.isAllowed(c) {
						pair := [2]int{a.first[i] + v, a.first[j] + w}
						a.left[pair[0]][pair[1]] = true
						a.list = append(a.list, pair)
					}
				}
			}
		}
	}
	return a
}

func (d design) numbered(x refusal) excluded {
	e := make(excluded)
	for i, f := range d.factors {
		if values, ok := x.when[f.name]; ok {
			for _, v := range f.values {
				e[i] = append(e[i], slices.Contains(strings.Split(values, "|"), v))
			}
		}
	}
	return e
}

// isAllowed reports whether topogen accepts a choice.
func (a *array) isAllowed(c choice) bool {
	return !slices.ContainsFunc(a.excluded, func(x excluded) bool {
		for i, values := range x {
			if c[i] == unset || !values[c[i]] {
				return false
			}
		}
		return true
	})
}

// trim removes the pairs that are in a row from the list. It reports whether pairs are left.
func (a *array) trim() bool {
	a.list = slices.DeleteFunc(a.list, func(p [2]int) bool { return !a.left[p[0]][p[1]] })
	return len(a.list) > 0
}

// draw draws a random choice, and returns how many of its pairs are left. It returns -1 if it finds
// no allowed choice. draw begins with a pair that is left. Then it takes the other factors in a random
// order, and for each factor the value with the most pairs that are left.
func (a *array) draw() (c choice, pairs int) {
	c = slices.Repeat(choice{unset}, len(a.factors))
	if len(a.list) > 0 {
		pairs = 1
		for _, v := range a.list[a.random.IntN(len(a.list))] {
			i := a.factor(v)
			c[i] = v - a.first[i]
		}
	}
	for _, i := range a.random.Perm(len(a.factors)) {
		if c[i] != unset {
			continue
		}
		best, most := unset, -1
		for _, v := range a.random.Perm(len(a.factors[i].values)) {
			c[i] = v
			if n := a.pairs(c, i); n > most && a.isAllowed(c) {
				best, most = v, n
			}
		}
		if best == unset {
			return nil, -1
		}
		c[i] = best
		pairs += most
	}
	return c, pairs
}

// factor returns the factor of a value.
func (a *array) factor(value int) int {
	i, found := slices.BinarySearch(a.first, value)
	if !found {
		i--
	}
	return i
}

// pairs returns how many pairs of a factor with the other factors are left.
func (a *array) pairs(c choice, i int) (n int) {
	for j, w := range c {
		v, w := a.first[i]+c[i], a.first[j]+w
		if c[j] != unset && (a.left[v][w] || a.left[w][v]) {
			n++
		}
	}
	return n
}

// add marks the pairs of a choice as not left, and returns the row of the choice.
func (a *array) add(c choice) row {
	r := defaults()
	for i, v := range c {
		r[a.factors[i].name] = a.factors[i].values[v]
		for j := i + 1; j < len(c); j++ {
			a.left[a.first[i]+v][a.first[j]+c[j]] = false
		}
	}
	return r
}

func (a *array) name(value int) string {
	i := a.factor(value)
	return a.factors[i].name + " " + a.factors[i].values[value-a.first[i]]
}
