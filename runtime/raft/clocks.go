package raft

import (
	"fmt"
	"log/slog"
	"slices"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/encoding/protowire"
)

const (
	clockTolerance = 500 * time.Millisecond // allowed difference between a clock and the clocks of the other members: more than the error of NTP plus the delay of a slow message
	clockAgeMax    = time.Minute            // how long the clock of a member is remembered, because it may be set later
	clockWarnEvery = 10 * time.Minute       // time between two warnings about the same wrong clock
	clockMax       = 1 << 62                // Unix nanoseconds: the year 2116
	clockField     = 1000                   // field number of the wall clock in the engine's messages, which skip unknown fields
	leaseField     = 1001                   // field number in answers to heartbeats; the value is CoreConfig.LeaseTime + 1
)

// clocks are the wall clocks of the members, as received in their messages. The time of
// entries never goes back. So a clock that is far ahead would stop the time of entries
// until the other clocks reach it. Therefore a node uses the median of the clocks if its
// own clock is far from the median. This requires that the clocks of a majority are
// right.
type clocks struct {
	byMember map[uint64]clock
	wrong    bool          // whether this node's clock is wrong
	warnedAt time.Duration // uptime of the last warning
}

// clock is the clock of a member.
type clock struct {
	offset int64         // Unix nanoseconds minus this node's uptime
	at     time.Duration // uptime when the message came
}

// set records the wall clock of a member.
func (c *clocks) set(id uint64, wall int64, uptime time.Duration) {
	if !valid(wall) {
		return
	}
	if c.byMember == nil {
		c.byMember = map[uint64]clock{}
	}
	c.byMember[id] = clock{wall - int64(uptime), uptime}
}

// valid reports whether a wall clock can be right.
func valid(wall int64) bool { return wall > 0 && wall <= clockMax }

// now returns the time for an entry. wall is the time of this node's wall clock. wrong is
// the error of this clock, according to the other members, or 0.
func (c *clocks) now(wall int64, uptime time.Duration, members members) (now int64, wrong time.Duration) {
	if len(c.byMember) == 0 {
		return wall, 0
	}
	offsets := append(make([]int64, 0, membersMax), wall-int64(uptime))
	for id, o := range c.byMember {
		if _, is := members[id]; !is || uptime-o.at > clockAgeMax {
			delete(c.byMember, id)
			continue
		}
		offsets = append(offsets, o.offset)
	}
	slices.Sort(offsets)
	median := offsets[(len(offsets)-1)/2] + int64(uptime) // of two clocks, the slower one
	if wrong = time.Duration(wall - median); wrong.Abs() > clockTolerance {
		return median, wrong
	}
	return wall, 0
}

// agreed returns the time that the clocks of a majority of the voters have reached, minus
// this node's uptime. It returns false while fewer of their clocks are known: then a
// minority of wrong clocks could decide.
func (c *clocks) agreed(id uint64, wall int64, uptime time.Duration, members members) (offset int64, ok bool) {
	voters, offsets := 0, make([]int64, 0, membersMax)
	for member, m := range members {
		if m.Learner {
			continue
		}
		voters++
		if o, known := c.byMember[member]; member == id && valid(wall) {
			offsets = append(offsets, wall-int64(uptime))
		} else if member != id && known && uptime-o.at <= clockAgeMax {
			offsets = append(offsets, o.offset)
		}
	}
	majority := voters/2 + 1
	if len(offsets) < majority {
		return 0, false
	}
	slices.Sort(offsets)
	return offsets[len(offsets)-majority], true
}

// appendClock appends the sender's wall clock to a message of the engine.
func appendClock(b []byte, wall int64) []byte {
	if wall <= 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, clockField, protowire.VarintType), uint64(wall))
}

// appendLease appends the sender's lease time to an answer to a heartbeat.
func appendLease(b []byte, lease time.Duration) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, leaseField, protowire.VarintType), uint64(lease)+1)
}

// takeTimes removes the sender's wall clock and lease time from a message and returns them. wall
// is 0 and lease is unknownLease if they are missing.
func takeTimes(m *pb.Message) (wall int64, lease time.Duration) {
	lease = unknownLease
	known := m.ProtoReflect()
	for b := []byte(known.GetUnknown()); len(b) > 0; {
		number, form, n := protowire.ConsumeField(b)
		if n < 0 {
			break
		}
		if form == protowire.VarintType {
			_, _, tag := protowire.ConsumeTag(b)
			v, _ := protowire.ConsumeVarint(b[tag:])
			switch number {
			case clockField:
				wall = int64(v)
			case leaseField:
				lease = max(time.Duration(v-1), unknownLease) // an invalid one is negative
			}
		}
		b = b[n:]
	}
	known.SetUnknown(nil)
	return wall, lease
}

// Clock records the wall clock of a member, as received in one of its messages.
func (c *Core) Clock(from uint64, wall int64) { c.clocks.set(from, wall, c.config.Uptime()) }

// now returns the time for an entry: the clock of this node, unless it differs from the
// clocks of most members.
func (c *Core) now() int64 {
	now, _ := c.clocks.now(c.config.Now(), c.config.Uptime(), c.members)
	return now
}

// agreed is [clocks.agreed] now, or 0.
func (c *Core) agreed() int64 {
	offset, _ := c.clocks.agreed(c.id, c.config.Now(), c.config.Uptime(), c.members)
	return offset
}

// Agreed returns the time of day that a majority of the voters agree on: the clock of this
// node unless it differs from the time that the clocks of a majority have reached, else that
// time. So the clocks of a minority cannot make it wrong. It returns false while too few
// clocks are known.
func (m *Machine[S, U, R]) Agreed() (time.Time, bool) {
	n := m.current.Load()
	if n == nil {
		return time.Time{}, false
	}
	offset := n.agreed.Load()
	if offset == 0 {
		return time.Time{}, false
	}
	own, agreed := n.config.Core.Now(), offset+int64(n.config.Core.Uptime())
	if time.Duration(own-agreed).Abs() <= clockTolerance {
		agreed = own
	}
	return time.Unix(0, agreed), true
}

// checkClock logs a warning if this node's clock is wrong, and a message when it is right
// again.
func (c *Core) checkClock() {
	k := &c.clocks
	uptime := c.config.Uptime()
	_, by := k.now(c.config.Now(), uptime, c.members)
	switch {
	case by != 0 && (!k.wrong || uptime-k.warnedAt >= clockWarnEvery):
		k.wrong, k.warnedAt = true, uptime
		c.log(slog.LevelWarn, fmt.Sprintf("raft: the clock of this node differs by %v from the clocks of the other members, which set the time of entries: correct the clock of this node", by.Round(time.Millisecond)))
	case by == 0 && k.wrong:
		k.wrong = false
		c.log(slog.LevelInfo, "raft: the clock of this node agrees with the clocks of the other members again")
	}
}

func (c *Core) log(level LogLevel, text string) {
	if c.config.Log != nil {
		c.config.Log(level, text)
	}
}
