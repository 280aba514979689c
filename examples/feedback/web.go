package main

import "math/rand/v2"

const (
	pageCount = 2000
	linksMax  = 8  // per page
	bored     = 15 // percentage of surfers that leave the web at each page
)

// linksOf returns the links of a page. The web is random but the same in each run; pages
// with small numbers are more popular.
func linksOf(page int) []int {
	random := rand.New(rand.NewPCG(uint64(page), 1))
	links := make([]int, 1+random.IntN(linksMax))
	for i := range links {
		x := random.Float64()
		links[i] = int(x * x * pageCount)
	}
	return links
}

// follow moves the surfer along one of the links of its page. It returns false if the
// surfer is bored.
func (s *Surfer) follow(links []int) bool {
	luck := s.Luck.Uint64()
	if luck%100 < bored {
		return false
	}
	s.Page = links[luck/100%uint64(len(links))]
	return true
}
