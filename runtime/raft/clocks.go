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
	clockTolerance = 500 * time.Millisecond // by which a clock may differ from the others': more than NTP leaves, and a slow message costs
	clockAgeMax    = time.Minute            // for which a member's clock is remembered: it may be set since
	clockWarnEvery = 10 * time.Minute       // from one warning of a clock that stays wrong to the next
	clockMax       = 1 << 62                // Unix nanoseconds: the year 2116
	clockField     = 1000                   // number of the wall clock beside the fields of the engine's messages, which skip what they do not know
)

// clocks are the wall clocks of the members, as their messages have told. The time of
// entries never goes back, so that a clock which is far ahead would hold it until the
// others have come up: a node takes the median for the time where its own clock is far
// from it. So the clocks of a majority have to be right.
type clocks struct {
	byMember map[uint64]clock
	wrong    bool          // the node's own
	warnedAt time.Duration // uptime when that was logged
}

// clock is that of a member.
type clock struct {
	offset int64         // in Unix nanoseconds, of this node's uptime
	at     time.Duration // uptime when it was heard
}

// hear notes the wall clock of a member.
func (c *clocks) set(id uint64, wall int64, uptime time.Duration) {
	if wall <= 0 || wall > clockMax {
		return // it does not say, or nonsense
	}
	if c.byMember == nil {
		c.byMember = map[uint64]clock{}
	}
	c.byMember[id] = clock{wall - int64(uptime), uptime}
}

// now returns the time, where the node's own wall clock shows wall, and by how much that
// is wrong, as far as the others know.
func (c *clocks) now(wall int64, uptime time.Duration, members members) (now int64, wrong time.Duration) {
	if len(c.byMember) == 0 {
		return wall, 0
	}
	ahead := append(make([]int64, 0, membersMax), wall-int64(uptime))
	for id, o := range c.byMember {
		if _, is := members[id]; !is || uptime-o.at > clockAgeMax {
			delete(c.byMember, id)
			continue
		}
		ahead = append(ahead, o.offset)
	}
	slices.Sort(ahead)
	median := ahead[(len(ahead)-1)/2] + int64(uptime) // of two the one that is behind
	if wrong = time.Duration(wall - median); wrong.Abs() > clockTolerance {
		return median, wrong
	}
	return wall, 0
}

// appendClock appends the sender's wall clock to a message of the engine's.
func appendClock(b []byte, wall int64) []byte {
	if wall <= 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, clockField, protowire.VarintType), uint64(wall))
}

// takeClock takes the sender's wall clock out of a message; 0: it does not say.
func takeClock(m *pb.Message) (wall int64) {
	known := m.ProtoReflect()
	for b := []byte(known.GetUnknown()); len(b) > 0; {
		number, form, n := protowire.ConsumeField(b)
		if n < 0 {
			break
		}
		if number == clockField && form == protowire.VarintType {
			_, _, tag := protowire.ConsumeTag(b)
			v, _ := protowire.ConsumeVarint(b[tag:])
			wall = int64(v)
		}
		b = b[n:]
	}
	known.SetUnknown(nil)
	return wall
}

// Clock notes the wall clock of a member, which a message of it has told.
func (c *Core) Clock(from uint64, wall int64) { c.clocks.set(from, wall, c.config.Uptime()) }

// now is the time that an entry gets: this node's, unless most of the members have
// another.
func (c *Core) now() int64 {
	now, _ := c.clocks.now(c.config.Now(), c.config.Uptime(), c.members)
	return now
}

// watchClock warns where this node's clock is wrong, and says when it is right again.
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
