package spec

import (
	"strconv"
	"strings"
)

// Similar finds the known name that is most similar to an unknown one. A file with many unknown
// and many known names must not take long, so after similarStepsMax steps Similar finds
// nothing. The zero value is ready to use.
type Similar struct{ steps int }

// Spend counts steps and reports whether the total is within the limit.
func (s *Similar) Spend(steps int) bool {
	s.steps += steps
	return s.steps <= similarStepsMax
}

// to returns the candidate nearest to name. If there is none, it returns the only candidate that
// name abbreviates, or "".
func (s *Similar) to(name string, candidates []string) string {
	if len(name) > nameMax || !s.Spend(len(candidates)) {
		return ""
	}
	if best := s.Nearest(name, candidates); best != "" {
		return best
	}
	return s.shortened(name, candidates)
}

// Nearest returns the candidate nearest to name, by edits of one letter and swaps of two. The
// number of edits is at most a third of the letters. It returns "" if no candidate is near.
func (s *Similar) Nearest(name string, candidates []string) string {
	best, distance := "", min(max(1, len(name)/3), len(name)-1)+1
	for _, c := range candidates {
		if c == name || max(len(c), len(name)) > nameMax || len(c)-len(name) >= distance || len(name)-len(c) >= distance {
			continue
		}
		if !s.Spend((len(c) + 1) * (len(name) + 1)) {
			break
		}
		if d := Edits(name, c); d < distance {
			best, distance = c, d
		}
	}
	return best
}

const shortenedMin = 3 // letters

// shortened returns the only candidate of which name is an abbreviation, without some of its
// words or their ends: max_attempts for attempts, on-failure for on-fail.
func (s *Similar) shortened(name string, candidates []string) string {
	only, words := "", wordsOf(name)
	if len(name) < shortenedMin || len(words) == 0 {
		return ""
	}
	for _, c := range candidates {
		if len(c) > nameMax || len(c) <= len(name) {
			continue
		}
		if !s.Spend(4 * len(c)) { // splitting it takes longer than a step
			break
		}
		if !shortens(words, wordsOf(c)) {
			continue
		}
		if only != "" {
			return ""
		}
		only = c
	}
	return only
}

// shortens reports whether each word is the beginning of another word, in the same order.
func shortens(words, of []string) bool {
	for _, w := range of {
		if len(words) > 0 && strings.HasPrefix(w, words[0]) {
			words = words[1:]
		}
	}
	return len(words) == 0
}

func wordsOf(name string) []string {
	return strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == '_' || r == '-' })
}

// Edits returns the Damerau-Levenshtein distance (optimal string alignment). It ignores the case
// of ASCII letters.
func Edits(a, b string) int {
	before, row, next := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if lower(a[i-1]) == lower(b[j-1]) {
				cost = 0
			}
			next[j] = min(next[j-1]+1, row[j]+1, row[j-1]+cost)
			if i > 1 && j > 1 && lower(a[i-1]) == lower(b[j-2]) && lower(a[i-2]) == lower(b[j-1]) {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, row, next = row, next, before
	}
	return row[len(b)]
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

func didYouMean(name string) string { return "did you mean " + strconv.Quote(name) + "?" }
