package local

import "github.com/topogen/topogen/runtime/durable/protocol"

// A connection keeps its messages in memory until they are received.
type connection struct {
	server    *Server
	group     *group
	name, pid string
	messages  chan protocol.Message // has one message at most
	waiting   []protocol.Message
	closed    bool
}

// Messages returns the channel of messages. It has at most one: each call adds the next.
func (c *connection) Messages() <-chan protocol.Message {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	c.fill()
	return c.messages
}

// Close ends the connection. Tasks that were not received go to another process.
func (c *connection) Close() {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	c.end()
}

func (c *connection) end() {
	if c.closed {
		return
	}
	c.closed = true
	select {
	case m := <-c.messages:
		c.waiting = append([]protocol.Message{m}, c.waiting...)
	default:
	}
	close(c.messages)
	for i, other := range c.group.members {
		if other == c {
			c.group.members = append(c.group.members[:i:i], c.group.members[i+1:]...)
			break
		}
	}
	for _, m := range c.waiting {
		if m.Execute != nil {
			c.server.send("poll://any@"+c.name, m)
		}
	}
	c.waiting = nil
}

func (c *connection) put(m protocol.Message) {
	c.waiting = append(c.waiting, m)
	c.fill()
}

func (c *connection) fill() {
	if c.closed || len(c.waiting) == 0 {
		return
	}
	select {
	case c.messages <- c.waiting[0]:
		c.waiting = c.waiting[1:]
	default:
	}
}
