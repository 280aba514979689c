package engine

import (
	"slices"
	"strings"
	"sync"

	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/protocol"
)

// A Connection receives the messages for a process of a group. See [protocol.Connection].
type Connection struct {
	hub        *hub
	group, pid string
	out        chan protocol.Message
	ready      chan struct{} // receives when a message was added
	closed     chan struct{}
	closeOnce  sync.Once

	// Protected by hub.mu.
	waiting  []queued
	bytes    int         // of the messages that were not delivered
	index    int         // in group.order
	starved  bool        // the store has messages for which there was no room
	gone     bool        // removed from its group
	replaced bool        // by a later connection of the process
	confirm  bool        // messages count as delivered when the receiver confirms them
	early    bool        // Confirmed was called before the pump has noticed the receipt
	taken    core.Effect // the receiver has it and has not confirmed it
}

var _ protocol.Confirmer = (*Connection)(nil)

// queued is a message in the buffer of a connection.
type queued struct {
	core.Effect
	held bool // it is an execute message that has waited for a worker
}

// CheckNames returns [ErrConnectionNames] for names that no address can have.
func CheckNames(group, pid string) error {
	if group == "" || pid == "" || strings.Contains(group, "/") {
		return ErrConnectionNames
	}
	return nil
}

// connect adds a connection, and closes an earlier one of the same process: if a process
// connects again, its earlier connection is broken, although this may not be noticed yet.
func (h *hub) connect(name, pid string) (*Connection, error) {
	if err := CheckNames(name, pid); err != nil {
		return nil, err
	}
	c := &Connection{
		hub: h, group: name, pid: pid,
		out: make(chan protocol.Message), ready: make(chan struct{}, 1), closed: make(chan struct{}),
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, ErrClosed
	}
	g := h.groups[name]
	var before *Connection
	if g != nil {
		before = g.byPID[pid]
	}
	if before == nil && h.count >= h.connectionsMax {
		return nil, ErrConnections
	}
	if before != nil {
		before.replaced = true
		before.remove()
		before.closeOnce.Do(func() { close(before.closed) })
	}
	if g = h.groups[name]; g == nil {
		g = &group{byPID: map[string]*Connection{}}
		h.groups[name] = g
	}
	c.index = len(g.order)
	g.order = append(g.order, c)
	g.byPID[pid] = c
	h.count++
	if before != nil {
		h.reroute(before)
	}
	c.pull()
	h.freed = true
	h.refills = append(h.refills, c)
	signal(h.wake)
	go c.pump()
	return c, nil
}

// Messages returns the channel of messages. It is closed when the connection ends.
func (c *Connection) Messages() <-chan protocol.Message { return c.out }

// Close ends the connection. Messages that were not received, or not confirmed, go to
// other connections.
func (c *Connection) Close() {
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	if !c.gone {
		c.remove()
		c.hub.reroute(c)
	}
	c.closeOnce.Do(func() { close(c.closed) })
}

// Replaced reports whether a later connection of the process has closed this one.
func (c *Connection) Replaced() bool {
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	return c.replaced
}

// Confirm implements [protocol.Confirmer].
func (c *Connection) Confirm() {
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	c.confirm = true
}

// Confirmed implements [protocol.Confirmer].
func (c *Connection) Confirmed() {
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	if c.taken.Address == "" {
		c.early = !c.gone // after the end of the connection it may be for a message that was rerouted
		return
	}
	c.delivered(c.taken)
	c.taken = core.Effect{}
	c.fill()
}

// remove removes the connection from its group.
func (c *Connection) remove() {
	c.gone = true
	h := c.hub
	g := h.groups[c.group]
	delete(g.byPID, c.pid)
	g.order = slices.Delete(g.order, c.index, c.index+1)
	for i, other := range g.order[c.index:] {
		other.index = c.index + i
	}
	if len(g.order) == 0 {
		delete(h.groups, c.group)
	} else {
		g.next %= len(g.order)
	}
	h.count--
}

// reroute sends the messages of a connection that was removed to others.
func (h *hub) reroute(c *Connection) {
	if c.taken.Address != "" {
		c.failed(c.taken)
		c.taken = core.Effect{}
	}
	for _, e := range c.waiting {
		h.again(e.Effect)
	}
	c.waiting = nil
}

// again sends a message that a connection did not take.
func (h *hub) again(e core.Effect) {
	h.release(e)
	switch {
	case h.closed: // the next engine on the store sends it
	case e.Message.Execute != nil:
		h.returned = append(h.returned, e)
		signal(h.wake)
	default:
		delete(h.flying, core.Delivered{Promise: e.Message.Unblock.ID, Address: e.Address})
		h.unblock(e)
	}
}

// failed sends a message again that the receiver could not pass on.
func (c *Connection) failed(e core.Effect) {
	c.hub.counters.polled.failed.Add(1)
	c.hub.again(e)
}

// delivered notes that a message needs no further attempt.
func (c *Connection) delivered(e core.Effect) {
	c.hub.counters.polled.delivered.Add(1)
	c.bytes -= pushBytes(e)
	c.hub.release(e)
	if u := e.Message.Unblock; u != nil {
		c.hub.took(core.Delivered{Promise: u.ID, Address: e.Address})
	}
}

// room reports whether the connection can take one more message.
func (c *Connection) room() bool {
	return len(c.waiting) < c.hub.bufferMax && c.bytes < messageBytesMax
}

func (c *Connection) enqueue(e core.Effect) {
	n := pushBytes(e)
	c.bytes += n
	c.hub.bytes += n
	c.add(queued{Effect: e})
}

func (c *Connection) add(q queued) {
	c.waiting = append(c.waiting, q)
	signal(c.ready)
}

// pull fills the connection with held messages.
func (c *Connection) pull() {
	for c.room() && !c.gone {
		address, t, ok := c.hub.held.take(c.group, c.pid)
		if !ok {
			return
		}
		c.add(queued{core.Effect{Address: address, Message: protocol.Message{Execute: &t}}, true})
	}
}

// pump hands the messages to the receiver, one at a time. A message that the receiver does
// not take before the connection is closed goes to another connection.
func (c *Connection) pump() {
	defer close(c.out)
	for {
		e, ok := c.next()
		if !ok {
			return
		}
		if e.held && !c.hub.offered(*e.Message.Execute) {
			c.skip()
			continue
		}
		select {
		case c.out <- e.Message:
			c.sent(e.Effect)
		case <-c.closed:
			c.notSent(e.Effect)
			return
		}
	}
}

// next waits for a message. It returns false when the connection is closed.
func (c *Connection) next() (queued, bool) {
	for {
		c.hub.mu.Lock()
		if len(c.waiting) > 0 {
			e := c.waiting[0]
			c.waiting[0] = queued{}
			c.waiting = c.waiting[1:]
			c.hub.mu.Unlock()
			return e, true
		}
		c.hub.mu.Unlock()
		select {
		case <-c.ready:
		case <-c.closed:
			return queued{}, false
		}
	}
}

// sent notes that the receiver has a message, and fills the place.
func (c *Connection) sent(e core.Effect) {
	h := c.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case !c.confirm || c.early:
		c.early = false
		c.delivered(e)
	case c.gone:
		c.failed(e)
	default:
		c.taken = e
	}
	c.fill()
}

// skip drops a held message whose task has ended or has another worker.
func (c *Connection) skip() {
	h := c.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counters.ended.Add(1)
	c.fill()
}

// fill uses the place of a message that has left the buffer.
func (c *Connection) fill() {
	h := c.hub
	c.pull()
	h.freed = true
	if len(c.waiting) <= h.bufferMax/2 && c.bytes <= messageBytesMax/2 {
		c.refill()
	}
}

// refill asks for the messages for which there was no room.
func (c *Connection) refill() {
	if c.starved && !c.gone {
		c.starved = false
		c.hub.refills = append(c.hub.refills, c)
		signal(c.hub.wake)
	}
}

// notSent sends the message that the receiver did not take before the end to another
// connection.
func (c *Connection) notSent(e core.Effect) {
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	c.hub.again(e)
}
