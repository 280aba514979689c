package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/store"
)

// A Clock is the clock of a computer.
type Clock interface {
	// Wall returns the time of day. It can jump. The zero Time says that the time of day is
	// not known at present: the engine goes on with Elapsed.
	Wall() time.Time
	// Elapsed returns the time since some instant. It only advances, at the speed of the
	// timers of package time.
	Elapsed() time.Duration
}

// NewClock returns the clock of the computer.
func NewClock() Clock { return systemClock{time.Now()} }

type systemClock struct{ start time.Time }

func (c systemClock) Wall() time.Time        { return time.Now() }
func (c systemClock) Elapsed() time.Duration { return time.Since(c.start) }

// Keys in table core.Meta: the clock, and while the clock of the computer is doubted, its time
// of day when the doubt began.
var clockKey, doubtKey = []byte("clock"), []byte("doubt")

// clock is the time of a store, on two axes (see [core.Instant]). Neither goes back, also
// over the end of the process.
type clock struct {
	source Clock
	debug  bool // Run follows Wall, and Wall follows the clock of the computer at once
	agreed bool // see Config
	log    *slog.Logger

	mu       sync.Mutex
	wall     time.Duration // since 1970, as returned last
	run      time.Duration // the time for which the store was open
	elapsed  time.Duration // of source, at the last call
	computer time.Duration // since 1970, the time of day of source at the last call
	doubt    *doubt        // nil: the clock of the computer has not jumped lately
	before   time.Duration // since 1970, in the store: when an earlier process began to doubt; 0: none did
	began    bool          // the time of day was known before
	ahead    bool          // the log says that the time of the store is ahead
}

// newClock returns the clock of a store. A new store begins with Run at the time of day:
// so Run is never far from Wall, and a store that was used with debug works without it.
func newClock(c Config, tx store.Tx) (*clock, error) {
	k := &clock{source: c.Clock, debug: c.Debug, agreed: c.Agreed, log: c.Logger, elapsed: c.Clock.Elapsed()}
	at, ok, err := LastCommit(tx)
	if err != nil {
		return nil, err
	}
	if !ok {
		wall := c.Clock.Wall()
		if wall.IsZero() {
			return nil, errors.New("engine: the time of day is unknown, and a new store would begin in 1970")
		}
		k.wall = since1970(wall)
		k.run = k.wall
		return k, nil
	}
	if b := tx.Get(core.Meta, doubtKey); len(b) == 8 {
		k.before = time.Duration(binary.LittleEndian.Uint64(b)) * time.Millisecond
	}
	k.wall = time.Duration(at.Wall) * time.Millisecond
	k.run = time.Duration(at.Run) * time.Millisecond
	return k, nil
}

// wallMax is in the year 2199. UnixNano of a time after 2262 can be any number.
const wallMax = 230 * 365 * 24 * time.Hour

// since1970 returns the time of day of a clock that can be broken: a time before 1970 is
// 1970, because instants are not negative, and a time after wallMax is wallMax.
func since1970(t time.Time) time.Duration {
	switch seconds := t.Unix(); {
	case seconds < 0:
		return 0
	case seconds >= int64(wallMax/time.Second):
		return wallMax
	}
	return time.Duration(t.UnixNano())
}

// LastCommit returns the time of the last commit of a store, and false if an engine has
// never committed to it.
func LastCommit(kv core.KV) (core.Instant, bool, error) {
	b := kv.Get(core.Meta, clockKey)
	if b == nil {
		return core.Instant{}, false, nil
	}
	if len(b) != 16 {
		return core.Instant{}, false, fmt.Errorf("engine: the clock in the store has %d bytes, want 16", len(b))
	}
	return core.Instant{Wall: int64(binary.LittleEndian.Uint64(b)), Run: int64(binary.LittleEndian.Uint64(b[8:]))}, true, nil
}

// now returns the time. If the clock of the computer is behind the last result, Wall
// advances at half its speed until the clock has caught up: deadlines come late rather
// than twice. If it has jumped forward, Wall goes on without it for a while, see [doubt].
func (c *clock) now() core.Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	elapsed := c.source.Elapsed()
	passed := max(elapsed-c.elapsed, 0)
	c.elapsed = max(elapsed, c.elapsed)
	c.advance(passed)
	c.run += passed
	if c.debug {
		c.run = max(c.run, c.wall)
	}
	return core.Instant{Wall: c.wall.Milliseconds(), Run: c.run.Milliseconds()}
}

// advance advances Wall after a time has passed.
func (c *clock) advance(passed time.Duration) {
	day := c.source.Wall()
	if day.IsZero() {
		c.wall += passed
		return
	}
	c.computer = since1970(day)
	if jump := c.computer - c.wall - passed; !c.debug && c.doubts(jump) {
		c.wall += passed
		c.began = true
		return
	}
	c.began = true
	if c.computer < c.wall {
		c.wall += passed / 2
	} else {
		c.wall = c.computer // not c.wall+passed/2, which is ahead if the process was stopped after it had read Elapsed
	}
	c.compare()
}

// save stores an instant of the clock, so that it continues from it after a restart.
func (c *clock) save(kv core.KV, now core.Instant) {
	save(kv, now)
	c.saveDoubt(kv)
}

func save(kv core.KV, now core.Instant) {
	b := binary.LittleEndian.AppendUint64(nil, uint64(now.Wall))
	kv.Put(core.Meta, clockKey, binary.LittleEndian.AppendUint64(b, uint64(now.Run)))
}

// reading returns the time of day of the computer and Elapsed, at the last call of now.
func (c *clock) reading() (computer, elapsed time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.computer, c.elapsed
}
