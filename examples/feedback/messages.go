package main

import "math/rand/v2"

// Surfer arrives at a page. It has its own random numbers, so that its path does not
// depend on other surfers.
type Surfer struct {
	Page int
	Luck rand.PCG
}

// Visits says how often surfers visited a page.
type Visits struct{ Page, Times int }
