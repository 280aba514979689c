package raft

import (
	"fmt"
	"testing"
)

// TestEssential lists without which nodes the table has no majority.
func TestEssential(t *testing.T) {
	for _, c := range []struct {
		voters int
		node   string
		want   bool
	}{
		{1, "n1", true}, {2, "n1", true}, {2, "n2", true}, {3, "n1", false}, {4, "n1", false}, {5, "n1", false},
		{1, "n9", false}, {2, "n9", false}, {3, "n9", false},
	} {
		first := map[string]string{}
		for i := range c.voters {
			first[fmt.Sprintf("n%d", i+1)] = ""
		}
		table := &Table{config: Config{Node: c.node, First: first}}
		if got := table.Essential(); got != c.want {
			t.Errorf("%s with %d voters: got %v, want %v", c.node, c.voters, got, c.want)
		}
	}
}
