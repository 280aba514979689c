package main

// direct follows the first n surfers one after the other in one loop, for comparison.
func direct(n int) (visits [pageCount]int) {
	var links [pageCount][]int
	for page := range links {
		links[page] = linksOf(page)
	}
	for number := range n {
		s := surfer(number)
		visits[s.Page]++
		for s.follow(links[s.Page]) {
			visits[s.Page]++
		}
	}
	return visits
}
