package engine

import (
	"context"
	"encoding/binary"
	"log/slog"
	"time"

	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/store"
)

const (
	// JumpMax is the jump forward of a clock that is believed at once: more than time servers
	// correct a clock that they already control, and less than most deadlines.
	JumpMax = time.Minute
	// doubtTime is how long a larger jump must last until it is believed: longer than most
	// computers need to get the time from a server after their start, and short enough for a
	// sleep that waits for it after a weekend.
	doubtTime = 10 * time.Second
	// longJump is a jump that is more often a wrong date than a store that was closed. longDoubt
	// is how long it must last, so that a person has time to correct the date.
	longJump  = 31 * 24 * time.Hour
	longDoubt = time.Minute
)

// doubtFor returns how long a jump must last until it is believed.
func doubtFor(jump time.Duration) time.Duration {
	if jump > longJump {
		return longDoubt
	}
	return doubtTime
}

// doubt is the time after a jump of the clock of the computer, forward, over more than
// JumpMax: against the monotonic clock, or at a start against the last commit. The computer
// was suspended, the store was closed, or the clock is wrong. In the last case a jump that
// is believed ends deadlines too early, and nothing can undo that. So Wall goes on without
// the jump until it has lasted for a while.
type doubt struct {
	began time.Duration // Elapsed
	first time.Duration // since 1970, the time of day when it began, maybe in an earlier process
	shift time.Duration // the time of day minus Elapsed, after the jump
	lasts time.Duration // see doubtFor
	start bool          // the jump happened while the store was closed
	ended chan struct{} // closed at the end
}

// doubts reports whether a jump of the clock of the computer is not believed.
func (c *clock) doubts(jump time.Duration) bool {
	d := c.doubt
	switch shift := c.computer - c.elapsed; {
	case d == nil && !c.began && c.lasted(jump):
		c.note("durable: the last commit is old, and the clock of the computer is believed, as it has not changed since an earlier start", slog.LevelInfo)
		return false
	case jump <= JumpMax, d == nil && !c.began && c.agreed && c.before == 0: // 0: no earlier leader has doubted it
		if d != nil {
			c.endDoubt("durable: the clock of the computer has jumped back; its jump forward had no effect", slog.LevelWarn)
		}
		return false
	case d == nil:
		c.doubt = &doubt{began: c.elapsed, first: c.first(), shift: shift, lasts: doubtFor(jump), start: !c.began, ended: make(chan struct{})}
		text := "durable: the clock of the computer has jumped forward; deadlines wait in case that it is wrong"
		if !c.began {
			text = "durable: the last commit is old; deadlines wait in case that the clock of the computer is wrong"
		}
		c.note(text, c.doubt.level(), "believed_in", c.doubt.lasts)
		return true
	case (shift - d.shift).Abs() > JumpMax: // another jump
		d.began, d.first, d.shift, d.lasts = c.elapsed, c.computer, shift, doubtFor(jump)
		return true
	case c.elapsed-d.began < d.lasts:
		return true
	}
	c.endDoubt("durable: the clock of the computer is believed now", d.level())
	return false
}

// lasted reports whether an earlier process has doubted the clock of the computer, and the
// clock has gone on since then. Otherwise the time of a program that never runs for so long
// would stand still. A time much later than the doubt is another jump.
func (c *clock) lasted(jump time.Duration) bool {
	since := c.computer - c.before
	return jump > JumpMax && c.before > 0 && since >= doubtFor(jump) && since <= longJump
}

// first returns the time of day at which a doubt begins, or began in an earlier
// process.
func (c *clock) first() time.Duration {
	if since := c.computer - c.before; !c.began && c.before > 0 && since >= 0 && since <= longJump {
		return c.before
	}
	return c.computer
}

// saveDoubt stores when the present doubt began.
func (c *clock) saveDoubt(kv core.KV) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.doubt != nil:
		kv.Put(core.Meta, doubtKey, binary.LittleEndian.AppendUint64(nil, uint64(c.doubt.first.Milliseconds())))
	case kv.Get(core.Meta, doubtKey) != nil:
		kv.Delete(core.Meta, doubtKey)
	}
}

// doubtEnded reports whether the store has a doubt that has ended. That must not wait for the
// next commit: after a kill, the same wrong time would be believed at once.
func (c *clock) doubtEnded(kv core.KV) bool {
	return c.doubted() == nil && kv.Get(core.Meta, doubtKey) != nil
}

// level is that of the log: a store that was closed for a while is normal.
func (d *doubt) level() slog.Level {
	if d.start {
		return slog.LevelInfo
	}
	return slog.LevelWarn
}

func (c *clock) endDoubt(text string, level slog.Level) {
	c.note(text, level)
	close(c.doubt.ended)
	c.doubt = nil
}

// compare logs when the time of the store gets far ahead of the clock of the computer, and
// when the clock has caught up.
func (c *clock) compare() {
	switch {
	case !c.ahead && c.wall-c.computer > JumpMax:
		c.ahead = true
		c.note("durable: the clock of the computer is behind the time of the store, which advances at half speed: correct the clock, or the store with \"topoctl durable clock\"", slog.LevelWarn)
	case c.ahead && c.wall == c.computer:
		c.ahead = false
		c.note("durable: the clock of the computer has caught up with the time of the store", slog.LevelInfo)
	}
}

// note logs a sentence with both times.
func (c *clock) note(text string, level slog.Level, more ...any) {
	difference := (c.computer - c.wall).Round(time.Second)
	c.log.Log(context.Background(), level, text, append([]any{"clock", date(c.computer.Milliseconds()), "store", date(c.wall.Milliseconds()), "difference", difference}, more...)...)
}

// doubted returns a channel that is closed when the time of day is certain, or nil if it is
// certain now.
func (c *clock) doubted() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.doubt == nil {
		return nil
	}
	return c.doubt.ended
}

// mustWait returns when a call can be carried out that creates a schedule, or nil if that is
// now. A schedule that begins at a time that is long over would make up for occurrences
// before its creation.
func (e *Engine) mustWait(tx store.Tx, c *call) <-chan struct{} {
	for _, op := range c.ops {
		if s, ok := op.(protocol.ScheduleCreate); ok && tx.Get(core.Schedules, []byte(s.ID)) == nil {
			return e.clock.doubted()
		}
	}
	return nil
}
