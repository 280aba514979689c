package raft

import (
	"maps"
	"slices"

	"github.com/topogen/topogen/runtime/fsm"
)

// clientUpdates are updates in sessions of clients. The clients number them, and may
// propose them again at another node.
type clientUpdates struct {
	list   map[sessionKey]*clientUpdate
	unsent []sessionKey // updates that must be proposed

	sentTick  int64
	lastCheck int64 // tick of the last search for overdue updates
}

// sessionKey identifies an update. With sequence 0 it opens a session: then client is a
// random number, and the data is the name of the client.
type sessionKey struct{ client, sequence uint64 }

// clientUpdate is an update that was proposed here and is not answered. Several waiters
// may wait for it, because a client may ask again before it gets the first answer.
type clientUpdate struct {
	floor   uint64
	data    []byte
	waiters []Waiter
	sent    bool
	tick    int64 // tick of the last proposal
}

func (c *clientUpdates) add(client, sequence, floor uint64, data []byte, w Waiter) {
	if c.list == nil {
		c.list = make(map[sessionKey]*clientUpdate)
	}
	key := sessionKey{client, sequence}
	if u := c.list[key]; u != nil {
		u.waiters = append(u.waiters, w)
		return
	}
	c.list[key] = &clientUpdate{floor: floor, data: data, waiters: []Waiter{w}}
	c.unsent = append(c.unsent, key)
}

// answer passes on a result.
func (c *clientUpdates) answer(client, sequence uint64, a fsm.Applied) {
	key := sessionKey{client, sequence}
	u := c.list[key]
	if u == nil {
		return
	}
	delete(c.list, key)
	for _, w := range u.waiters {
		w.Done(a)
	}
}

// abandon removes the waiter w. It reports whether w was there, and whether the update
// may have been proposed.
func (c *clientUpdates) abandon(client, sequence uint64, w Waiter) (found, sent bool) {
	key := sessionKey{client, sequence}
	u := c.list[key]
	if u == nil {
		return false, true
	}
	i := slices.Index(u.waiters, w)
	if i < 0 {
		return false, true
	}
	if u.waiters = slices.Delete(u.waiters, i, i+1); len(u.waiters) == 0 {
		delete(c.list, key)
	}
	return true, u.sent
}

// batch fills b with updates that must be proposed, and returns how many keys it used. It
// ends an update that check refuses. check may be nil.
func (c *clientUpdates) batch(b *fsm.Batch, now int64, check func(update []byte) error) (n int) {
	b.Reset(now)
	for ; n < len(c.unsent) && b.Len() < batchCommandsMax && len(b.Bytes()) < batchBytesMax; n++ {
		switch key := c.unsent[n]; {
		case c.list[key] == nil:
		case key.sequence != 0 && check != nil && check(c.list[key].data) != nil:
			c.answer(key.client, key.sequence, fsm.Applied{Err: check(c.list[key].data)})
		case key.sequence == 0:
			b.Open(string(c.list[key].data), key.client)
		default:
			b.Update(key.client, key.sequence, c.list[key].floor, c.list[key].data)
		}
	}
	return n
}

// markProposed records that the first n updates of the last batch were proposed.
func (c *clientUpdates) markProposed(n int, tick int64) {
	c.sentTick = tick
	for _, key := range c.unsent[:n] {
		if u := c.list[key]; u != nil {
			u.sent, u.tick = true, tick
		}
	}
	c.unsent = c.unsent[n:]
}

// reproposeOverdue marks updates to be proposed again if they were proposed too long ago.
func (c *clientUpdates) reproposeOverdue(tick, timeout int64) {
	if c.lastCheck == tick || len(c.unsent) > 0 { // otherwise the engine accepts no proposals at the moment
		return
	}
	c.lastCheck = tick
	for key, u := range c.list {
		if u.sent && tick-u.tick >= timeout {
			c.unsent = append(c.unsent, key)
			u.tick = tick
		}
	}
	sortKeys(c.unsent) // in a fixed order, so that simulations are reproducible
}

// repropose marks all unanswered updates to be proposed again.
func (c *clientUpdates) repropose() {
	c.unsent = c.unsent[:0]
	for key := range c.list {
		c.unsent = append(c.unsent, key)
	}
	sortKeys(c.unsent) // in a fixed order, so that simulations are reproducible
}

// fail ends the updates that were not proposed with the error unsent, and the others with
// the error sent. Updates whose error is nil are kept.
func (c *clientUpdates) fail(unsent, sent error) {
	if len(c.list) == 0 {
		return
	}
	keys := slices.Collect(maps.Keys(c.list))
	sortKeys(keys)
	for _, key := range keys {
		err := unsent
		if c.list[key].sent {
			err = sent
		}
		if err != nil {
			c.answer(key.client, key.sequence, fsm.Applied{Err: err})
		}
	}
}
