package main

// Add adds one to the count of a name.
type Add struct {
	Name string
	By   int // the source
	N    int // 1 for the first Add of this source with this name, 2 for the second, …
}

// Progress is how many messages a counter has counted so far.
type Progress struct{ Counter, Counted int }

// Sent is how many messages a source has sent, by name. It is the last message of a source.
type Sent struct {
	By     int
	Counts map[string]int
}

// Total is what a counter has counted, by name. It is the last message of a counter.
type Total struct {
	Counter int
	Counts  map[string]int
	Wrong   int // messages whose N was not the next one: an earlier one is missing, or it came twice
}
