package bind

import "strings"

// nearCellsMax bounds the steps that looking for similar names may take for one
// topology: 0.1 s.
const nearCellsMax = 1 << 24

// near finds the name that was probably meant. A topology with many wrong names
// must not buy much time with them: cells is what was spent.
type near struct{ cells int }

// to returns the candidate that was probably meant by name, or "": at most a
// third of its letters are wrong, without regard to case.
func (n *near) to(name string, candidates []string) string {
	best, distance := "", max(1, len(name)/3)+1
	for _, c := range candidates {
		if c == name || len(c)-len(name) >= distance || len(name)-len(c) >= distance {
			continue
		}
		if n.cells += (len(name) + 1) * (len(c) + 1); n.cells > nearCellsMax {
			break
		}
		if d := edits(strings.ToLower(name), strings.ToLower(c)); d < distance {
			best, distance = c, d
		}
	}
	return best
}

// edits is the distance of Levenshtein, in bytes.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			diagonal, row[j] = row[j], min(row[j]+1, row[j-1]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
