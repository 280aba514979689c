package write

import (
	"bytes"
	"slices"
	"sort"
)

// matchDepthMax bounds how often a gap between two matches is looked into
// again. Each level is linear in the lines, so the whole is O(n log n) for any
// input; what is still unmatched then is shown as replaced.
const matchDepthMax = 16

// splitLines splits after each newline; the last line may lack one.
func splitLines(b []byte) [][]byte {
	lines := bytes.SplitAfter(b, []byte("\n"))
	return lines[:len(lines)-1+min(1, len(lines[len(lines)-1]))]
}

// matcher pairs equal lines of a and b in order: the patience method. Lines that
// occur once on both sides are anchors, the longest increasing run of them is
// kept, and the gaps between are matched in the same way. It is never slow, and
// it pairs function heads, not closing braces.
type matcher struct {
	a, b []int // lines as numbers: equal lines have equal numbers
	pair []int // for each line of a its line of b, or -1
	// Scratch, by line number: how often and where a line occurs in the gap.
	countA, countB, whereB []int
}

// matchLines returns for each line of a the line of b that it stays as, or -1.
func matchLines(a, b [][]byte) []int {
	numbers := map[string]int{}
	number := func(lines [][]byte) []int {
		ns := make([]int, len(lines))
		for i, line := range lines {
			n, ok := numbers[string(line)]
			if !ok {
				n = len(numbers)
				numbers[string(line)] = n
			}
			ns[i] = n
		}
		return ns
	}
	m := matcher{a: number(a), b: number(b)}
	m.pair = slices.Repeat([]int{-1}, len(a))
	m.countA = make([]int, len(numbers))
	m.countB = make([]int, len(numbers))
	m.whereB = make([]int, len(numbers))
	m.match(0, len(a), 0, len(b), 0)
	return m.pair
}

// match pairs lines of a[a0:a1] with lines of b[b0:b1].
func (m *matcher) match(a0, a1, b0, b1, depth int) {
	for a0 < a1 && b0 < b1 && m.a[a0] == m.b[b0] {
		m.pair[a0] = b0
		a0, b0 = a0+1, b0+1
	}
	for a0 < a1 && b0 < b1 && m.a[a1-1] == m.b[b1-1] {
		a1, b1 = a1-1, b1-1
		m.pair[a1] = b1
	}
	if a0 == a1 || b0 == b1 || depth == matchDepthMax {
		return
	}
	anchors := m.anchors(a0, a1, b0, b1)
	if len(anchors) == 0 {
		return // the gap would be the same again
	}
	for _, at := range anchors {
		m.match(a0, at.a, b0, at.b, depth+1)
		m.pair[at.a] = at.b
		a0, b0 = at.a+1, at.b+1
	}
	m.match(a0, a1, b0, b1, depth+1)
}

type anchor struct{ a, b int }

// anchors returns the longest run, increasing on both sides, of lines that are
// unique on both sides.
func (m *matcher) anchors(a0, a1, b0, b1 int) []anchor {
	for _, n := range m.a[a0:a1] {
		m.countA[n]++
	}
	for i, n := range m.b[b0:b1] {
		m.countB[n]++
		m.whereB[n] = b0 + i
	}
	var unique []anchor
	for i, n := range m.a[a0:a1] {
		if m.countA[n] == 1 && m.countB[n] == 1 {
			unique = append(unique, anchor{a0 + i, m.whereB[n]})
		}
	}
	for _, n := range m.a[a0:a1] {
		m.countA[n] = 0
	}
	for _, n := range m.b[b0:b1] {
		m.countB[n] = 0
	}
	return longestRun(unique)
}

// longestRun returns the longest subsequence with increasing b; a increases
// already. It is patience sorting: tops[i] is the last card of pile i.
func longestRun(cards []anchor) []anchor {
	var tops []int
	before := make([]int, len(cards))
	for i, card := range cards {
		pile := sort.Search(len(tops), func(p int) bool { return cards[tops[p]].b >= card.b })
		before[i] = -1
		if pile > 0 {
			before[i] = tops[pile-1]
		}
		if pile == len(tops) {
			tops = append(tops, i)
		} else {
			tops[pile] = i
		}
	}
	run := make([]anchor, len(tops))
	if len(tops) > 0 {
		for at, i := len(tops)-1, tops[len(tops)-1]; at >= 0; at, i = at-1, before[i] {
			run[at] = cards[i]
		}
	}
	return run
}
