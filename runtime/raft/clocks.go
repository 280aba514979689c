package raft

import (
	"slices"
	"time"
)

const (
	clockTolerance = 500 * time.Millisecond // by which a clock may differ from the others': more than NTP leaves, and a slow message costs
	clockAgeMax    = time.Minute            // for which a member's clock is remembered: it may be set since
)

// clocks are the wall clocks of the members, as their messages have told. The time of
// entries never goes back, so that a clock which is far ahead would hold it until the
// others have come up: a node takes the median for the time where its own clock is far
// from it. So the clocks of a majority have to be right.
type clocks struct {
	heard map[uint64]clock
}

// clock is that of a member.
type clock struct {
	ahead int64         // in Unix nanoseconds, of this node's uptime
	at    time.Duration // uptime when it was heard
}

// hear notes the wall clock of a member.
func (c *clocks) hear(id uint64, wall int64, uptime time.Duration) {
	if wall <= 0 {
		return // it does not say
	}
	if c.heard == nil {
		c.heard = map[uint64]clock{}
	}
	c.heard[id] = clock{wall - int64(uptime), uptime}
}

// now returns the time, where the node's own wall clock shows wall, and by how much that
// is wrong, as far as the others know.
func (c *clocks) now(wall int64, uptime time.Duration, members members) (now int64, wrong time.Duration) {
	ahead := []int64{wall - int64(uptime)}
	for id, o := range c.heard {
		if _, is := members[id]; !is || uptime-o.at > clockAgeMax {
			delete(c.heard, id)
			continue
		}
		ahead = append(ahead, o.ahead)
	}
	slices.Sort(ahead)
	median := ahead[(len(ahead)-1)/2] + int64(uptime) // of two the one that is behind
	if wrong = time.Duration(wall - median); wrong.Abs() > clockTolerance {
		return median, wrong
	}
	return wall, 0
}
