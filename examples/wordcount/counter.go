package main

import (
	"cmp"
	"slices"
	"strings"
)

// countsKept is how many of its words a counter reports.
const countsKept = 100

// Counter counts the words that are routed to it. No other counter sees them, so
// there is nothing to lock and nothing to add up afterwards.
type Counter struct {
	times map[string]*int
	words int
}

// ReceiveWord counts a word.
func (c *Counter) ReceiveWord(m Word) {
	c.words++
	if n := c.times[m.Text]; n != nil {
		*n++
		return
	}
	if c.times == nil {
		c.times = make(map[string]*int)
	}
	// The text is a part of its chunk. Kept as it is, it would keep the chunk too.
	n := 1
	c.times[strings.Clone(m.Text)] = &n
}

// Finish is called when all splitters have finished and no word is under way. Each
// word has one counter, so the most frequent of all are among those of each.
func (c *Counter) Finish(out *CounterSender) {
	counts := make([]Count, 0, len(c.times))
	for word, n := range c.times {
		counts = append(counts, Count{word, *n})
	}
	slices.SortFunc(counts, byFrequency)
	for _, count := range counts[:min(countsKept, len(counts))] {
		out.SendCount(count)
	}
	out.SendTotal(Total{c.words, len(counts)})
}

// byFrequency orders the most frequent first, equals by the alphabet.
func byFrequency(a, b Count) int {
	return cmp.Or(cmp.Compare(b.Times, a.Times), cmp.Compare(a.Word, b.Word))
}
