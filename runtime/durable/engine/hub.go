package engine

import (
	"sync"
	"time"

	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/protocol"
)

// hub hands messages to connections. An execute message waits in memory, bounded, until a
// connection has room. An unblock message waits in the store: the hub knows only those
// that it has handed to a connection or to the pusher.
type hub struct {
	connectionsMax, bufferMax int
	counters                  *counters
	push                      func(core.Effect) bool      // false: the message has no place
	pushEnded                 func(id string) bool        // removes the message of a task; false: it has none
	pushable                  func(address string) int    // how many messages have a place
	offered                   func(protocol.TaskRef) bool // false: the task has ended, or has another worker
	elapsed                   func() time.Duration
	wake                      chan struct{} // for the committer: refills or acks

	mu        sync.Mutex
	closed    bool
	groups    map[string]*group
	count     int
	held      held
	flying    map[core.Delivered]bool // unblock messages with a connection or the pusher, or in acks
	acks      []core.Delivered        // taken, but still in the store
	acksSince time.Duration
	refills   []*Connection // want messages from the store
	bytes     int           // of the messages that connections have
	full      bool          // a message was refused because of streamBytesMax
	freed     bool          // there may be places for messages of retries that were left out
	lacking   bool          // a retry was left out because its message had no place
	returned  []core.Effect // execute messages that connections did not take, see resend
}

// group holds the connections of a group.
type group struct {
	byPID map[string]*Connection
	order []*Connection // in the order in which they connected
	next  int           // the first one to try
}

func newHub(connectionsMax, bufferMax int, counters *counters, elapsed func() time.Duration) *hub {
	return &hub{
		connectionsMax: connectionsMax, bufferMax: bufferMax, counters: counters, elapsed: elapsed,
		wake: make(chan struct{}, 1), groups: map[string]*group{}, held: newHeld(), flying: map[core.Delivered]bool{},
	}
}

// deliver sends messages after their commit, and forgets those of tasks that do not wait for a
// worker any longer. It does not block.
func (h *hub) deliver(effects []core.Effect, ended ended) {
	if len(effects)+len(ended) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for id := range ended {
		h.forget(id)
	}
	for _, e := range effects {
		switch {
		case e.Dropped:
			h.counters.unblocksDropped.Add(1)
		case e.Message.Execute != nil:
			h.counters.executes.Add(1)
			if ended[e.Message.Execute.ID] { // in the same transaction
				h.counters.ended.Add(1)
				continue
			}
			h.execute(e)
		default:
			h.counters.unblocks.Add(1)
			h.unblock(e)
		}
	}
}

// forget forgets the message of a task that has ended or has a worker. Messages that a
// connection has are few; its worker gets them.
func (h *hub) forget(id string) {
	if h.held.remove(id) || h.pushEnded(id) {
		h.counters.ended.Add(1)
		h.freed = h.freed || h.lacking
	}
}

// execute hands an execute message to a connection, or keeps it.
func (h *hub) execute(e core.Effect) {
	r := parse(e.Address)
	switch r.kind {
	case routePush:
		if !h.push(e) {
			h.counters.pushed.dropped.Add(1)
		}
		return
	case routeAny, routeUni:
		if c := h.pick(r); c != nil {
			c.enqueue(e)
			return
		}
		if h.held.add(key(r), *e.Message.Execute) {
			return
		}
	}
	h.counters.polled.dropped.Add(1)
}

// unblock hands an unblock message to a connection or the pusher. If there is none, or it
// has no room, the message stays in the store until a refill.
func (h *hub) unblock(e core.Effect) {
	id := core.Delivered{Promise: e.Message.Unblock.ID, Address: e.Address}
	r := parse(e.Address)
	switch r.kind {
	case routePush:
		h.flying[id] = h.push(e)
	case routeAny, routeUni:
		if c := h.pick(r); c != nil && h.fits() {
			h.flying[id] = true
			c.enqueue(e)
		} else {
			h.starve(r)
		}
	}
	if !h.flying[id] {
		delete(h.flying, id)
	}
}

// pick returns the connection with room that an address reaches, or nil: the process that
// the address prefers, else the one with the fewest messages, in turns.
func (h *hub) pick(r route) *Connection {
	g := h.groups[r.group]
	if g == nil {
		return nil
	}
	if r.pid != "" {
		if c := g.byPID[r.pid]; c != nil && c.room() {
			return c
		}
		if r.kind == routeUni {
			return nil
		}
	}
	var best *Connection
	for i := range g.order {
		c := g.order[(g.next+i)%len(g.order)]
		if c.room() && (best == nil || len(c.waiting) < len(best.waiting)) {
			if best = c; len(c.waiting) == 0 {
				break
			}
		}
	}
	if best != nil {
		g.next = (best.index + 1) % len(g.order)
	}
	return best
}

// starve notes that the store has messages for connections that have no room.
func (h *hub) starve(r route) {
	if g := h.groups[r.group]; g != nil {
		for _, c := range g.order {
			c.starved = c.starved || r.reaches(c.group, c.pid)
		}
	}
}

// fits reports whether connections can take more unblock messages.
func (h *hub) fits() bool {
	h.full = h.full || h.bytes >= streamBytesMax
	return !h.full
}

// release notes that a connection does not have a message any longer.
func (h *hub) release(e core.Effect) {
	h.bytes -= pushBytes(e)
	if !h.full || h.bytes > streamBytesMax/2 {
		return
	}
	h.full = false
	for _, g := range h.groups {
		for _, c := range g.order {
			c.refill()
		}
	}
}

// takeRefills returns the connections that want messages from the store.
func (h *hub) takeRefills() []*Connection {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.acks) > refillAcksMax {
		return nil // until the disk has space to delete them
	}
	refills := h.refills
	h.refills = nil
	for _, c := range refills {
		c.starved = false
	}
	return refills
}

// offer hands a stored unblock message to a connection. It reports false if the connection
// has no room or is closed.
func (c *Connection) offer(e core.Effect) bool {
	h := c.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	id := core.Delivered{Promise: e.Message.Unblock.ID, Address: e.Address}
	switch {
	case h.flying[id]:
		return true
	case c.gone:
		return false
	case !c.room() || !h.fits():
		c.starved = true
		return false
	}
	h.flying[id] = true
	c.enqueue(e)
	return true
}

// len returns the number of connections and of held messages.
func (h *hub) len() (connections, held int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.count, len(h.held.tasks)
}

// close closes all connections.
func (h *hub) close() {
	h.mu.Lock()
	h.closed = true
	var open []*Connection
	for _, g := range h.groups {
		open = append(open, g.order...)
	}
	h.mu.Unlock()
	for _, c := range open {
		c.Close()
	}
}
