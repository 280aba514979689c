package main

import (
	"cmp"
	"slices"
)

// Ranking collects the visits of all pages.
type Ranking struct{ visits [pageCount]int }

// ReceiveVisits stores the visits of one page.
func (r *Ranking) ReceiveVisits(m Visits) { r.visits[m.Page] = m.Times }

// best returns the n pages with the most visits, the most visited first.
func (r *Ranking) best(n int) []Visits {
	pages := make([]Visits, pageCount)
	for page, times := range r.visits {
		pages[page] = Visits{page, times}
	}
	slices.SortFunc(pages, func(a, b Visits) int {
		return cmp.Or(cmp.Compare(b.Times, a.Times), cmp.Compare(a.Page, b.Page))
	})
	return pages[:n]
}
