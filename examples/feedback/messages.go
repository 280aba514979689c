package main

import "math/rand/v2"

// Surfer reaches a page. It carries its own random numbers, so that its way does not
// depend on who else is under way.
type Surfer struct {
	Page int
	Luck rand.PCG
}

// Visits says how often surfers reached a page.
type Visits struct{ Page, Times int }
