package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/store"
)

// latestKey is the key of the latest time of day in table core.Meta, of a store whose clock
// was set back. Settled promises keep their times, which can be after the time of the store.
var latestKey = []byte("latest")

// LatestTime returns the latest time that a store has had. [core.Check] needs it. It is zero
// if an engine has never committed to the store.
func LatestTime(kv core.KV) (core.Instant, error) {
	at, _, err := LastCommit(kv)
	if b := kv.Get(core.Meta, latestKey); err == nil && b != nil {
		if len(b) != 8 {
			return at, fmt.Errorf("engine: the latest time in the store has %d bytes, want 8", len(b))
		}
		at.Wall = max(at.Wall, int64(binary.LittleEndian.Uint64(b)))
	}
	return at, err
}

// ErrNotAhead is the error of SetBack if the time of the store is not after the new one.
var ErrNotAhead = errors.New("engine: the time of the store is not ahead")

// SetBack sets the time of a store back that no engine uses, after its clock was ahead. All
// that an answer can have shown remains: promises whose deadline has passed by the time of
// the store are settled first. Pending promises and schedules go on from the new time. If
// SetBack fails, it can be repeated.
func SetBack(s store.Store, to time.Time) error {
	c, err := core.New(core.Config{})
	if err != nil {
		return err
	}
	op := core.SetBack{To: since1970(to).Milliseconds()}
	for more := true; more && err == nil; {
		err = s.Update(func(tx store.Tx) error {
			at, ok, err := LastCommit(tx)
			switch {
			case err != nil:
				return err
			case !ok || at.Wall <= op.To:
				return ErrNotAhead
			}
			latest, err := LatestTime(tx)
			if err != nil {
				return err
			}
			r, _ := c.Step(tx, op, at) // the next engine sends the messages
			if r.Fault != nil {
				return r.Fault
			}
			if more, op.Cursor = r.More, r.Cursor; !more {
				tx.Put(core.Meta, latestKey, binary.LittleEndian.AppendUint64(nil, uint64(latest.Wall)))
				tx.Delete(core.Meta, doubtKey) // it was about another time
				save(tx, core.Instant{Wall: op.To, Run: at.Run})
			}
			return nil
		})
	}
	return err
}
