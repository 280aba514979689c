package main

import (
	"cmp"
	"slices"
	"strings"
)

// countsKept is the number of words that a counter reports.
const countsKept = 100

// Counter counts the words that are routed to it. No other counter gets these words, so
// no locks are needed and no counts must be added up at the end.
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
	// The text is a part of its chunk: without a copy it would keep the chunk in memory.
	n := 1
	c.times[strings.Clone(m.Text)] = &n
}

// Finish is called when all splitters have finished and all words were received. Each
// word is counted by one counter. So each of the most frequent words is also among the
// most frequent words of its counter.
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

// byFrequency orders the most frequent words first, and equally frequent words by
// alphabet.
func byFrequency(a, b Count) int {
	return cmp.Or(cmp.Compare(b.Times, a.Times), cmp.Compare(a.Word, b.Word))
}
