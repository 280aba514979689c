package main

import (
	"fmt"
	"io"
	"os"
	"slices"
)

// Top prints the most frequent words after the counters have reported.
type Top struct {
	rows   int
	out    io.Writer
	counts []Count
	total  Total
}

// TopConfig is the `with:` section in topology.yml, which topogen checks at build time.
type TopConfig struct {
	Rows int // most words that are printed
}

// NewTop rejects more rows than the counters report.
func NewTop(c TopConfig) (*Top, error) {
	if c.Rows < 1 || c.Rows > countsKept {
		return nil, fmt.Errorf("rows must be between 1 and %d, got %d", countsKept, c.Rows)
	}
	return &Top{rows: c.Rows, out: os.Stdout}, nil
}

// ReceiveCount stores a count.
func (t *Top) ReceiveCount(m Count) { t.counts = append(t.counts, m) }

// ReceiveTotal adds up the totals of the counters.
func (t *Top) ReceiveTotal(m Total) {
	t.total.Words += m.Words
	t.total.Different += m.Different
}

// Finish prints the table.
func (t *Top) Finish() error {
	slices.SortFunc(t.counts, byFrequency)
	for _, c := range t.counts[:min(t.rows, len(t.counts))] {
		share := 100 * float64(c.Times) / float64(t.total.Words)
		if _, err := fmt.Fprintf(t.out, "%9d %5.1f %%  %s\n", c.Times, share, c.Word); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(t.out, "%9d words, %d different\n", t.total.Words, t.total.Different)
	return err
}
