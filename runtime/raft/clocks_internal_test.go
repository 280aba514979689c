package raft

import (
	"testing"
	"time"
)

// TestOneClockIsWrong: the time is that of the others.
func TestOneClockIsWrong(t *testing.T) {
	const year = int64(365 * 24 * time.Hour)
	const noon = int64(1_700_000_000_000_000_000)
	group := members{1: {}, 2: {}, 3: {}, 4: {}, 5: {}}
	for _, test := range []struct {
		what   string
		own    int64
		others []int64
		want   int64
	}{
		{"alone", noon + year, nil, noon + year},
		{"all agree", noon, []int64{noon + 1e6, noon - 1e6}, noon},
		{"own is ahead", noon + year, []int64{noon, noon}, noon},
		{"own is behind", noon - year, []int64{noon, noon}, noon},
		{"another is ahead", noon, []int64{noon + year, noon}, noon},
		{"of two the other is ahead", noon, []int64{noon + year}, noon},
		{"of two own is ahead", noon + year, []int64{noon}, noon},
		{"two of five are ahead", noon + year, []int64{noon, noon + 2*year, noon, noon}, noon},
		{"a peer tells no clock", noon, []int64{0, 0}, noon},
	} {
		var c clocks
		const uptime = 3 * time.Hour
		for i, wall := range test.others {
			c.hear(uint64(i+1), wall, uptime)
		}
		got, wrong := c.now(test.own, uptime, group)
		if got != test.want || (wrong != 0) != (test.own != test.want) {
			t.Errorf("%s: %v, wrong by %v, want %v", test.what, time.Unix(0, got), wrong, time.Unix(0, test.want))
		}
	}
}

// TestClocksGoOn with the node's uptime, and are forgotten.
func TestClocksGoOn(t *testing.T) {
	const noon = int64(1_700_000_000_000_000_000)
	group := members{1: {}, 2: {}}
	var c clocks
	c.hear(1, noon, time.Second)
	c.hear(2, noon, time.Second)
	c.hear(99, noon, time.Second) // no member
	ahead := noon + int64(time.Hour)
	if got, _ := c.now(ahead, 21*time.Second, group); got != noon+int64(20*time.Second) {
		t.Errorf("after 20 s it is %v", time.Duration(got-noon))
	}
	if got, _ := c.now(ahead, time.Second+clockAgeMax+1, group); got != ahead || len(c.heard) > 0 {
		t.Errorf("what was heard long ago still counts: %v", time.Duration(got-noon))
	}
}
