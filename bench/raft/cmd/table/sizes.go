package main

import (
	"fmt"

	"github.com/topogen/topogen/bench/raft"
)

// sizes compares topogen with the bare loop at each size of an update.
func (t *table) sizes(bytes, callers []int) error {
	var subjects []raft.Subject
	for _, s := range t.subjects {
		if s.Name == ours || s.Name == bare {
			subjects = append(subjects, s)
		}
	}
	list := [][]string{{"bytes", "callers", "", "updates/s", "MiB/s", "times bare", "dropped", "leader changes"}}
	for _, load := range raft.Loads(bytes, callers) {
		c, err := raft.Run(subjects, load, t.effort)
		if err != nil {
			return fmt.Errorf("%d bytes, %d callers: %w", load.Bytes, load.Callers, err)
		}
		for _, s := range subjects {
			list = append(list, t.size(&c, s.Name))
		}
	}
	fmt.Print("\nsizes of updates\n\n")
	return rows(list)
}

// size returns a row of the table.
func (t *table) size(c *raft.Contest, name string) []string {
	updates, counts := c.Median(name, rate), c.Counts[name]
	times := ""
	if name == ours && len(c.Samples[bare]) > 0 {
		times = fmt.Sprintf("%.2f", c.Times(ours, bare))
		what := fmt.Sprintf("%d bytes, %d callers: ", c.Bytes, c.Callers)
		t.atLeast(what+"times the bare loop", bareTimes, c.Times(ours, bare), "%.2f")
		t.atMost(what+"messages dropped, and leader changes", 0, float64(counts.Dropped+counts.Term), "%.0f")
	}
	return []string{
		fmt.Sprint(c.Bytes), fmt.Sprint(c.Callers), name,
		fmt.Sprintf("%.0f", updates), fmt.Sprintf("%.1f", updates*float64(c.Bytes)/(1<<20)),
		times, fmt.Sprint(counts.Dropped), fmt.Sprint(counts.Term),
	}
}
