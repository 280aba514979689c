package server

import (
	"sync"

	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
)

// A charge counts the bytes of one response in Server.responses, until the client has read it. It
// implements [engine.Admission].
type charge struct {
	server *Server
	mu     sync.Mutex
	bytes  int64
	over   bool // the response was sent, or the client has gone
}

// Admit reports whether the memory for another response is there. Slow clients make room.
func (c *charge) Admit() bool {
	s := c.server
	for s.responses.Load() >= int64(s.config.ResponsesMax) {
		if !s.slow.makeRoom() {
			return false
		}
	}
	return true
}

// Made replaces the number of bytes.
func (c *charge) Made(bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.server.responses.Add(int64(bytes) - c.bytes)
		c.bytes = int64(bytes)
	}
}

// admitRead is Admit and Made in one step, for the result of an operation that only read.
// Many of them are made at the same time.
func (c *charge) admitRead(r *protocol.Result) bool {
	s := c.server
	s.reads.Lock()
	defer s.reads.Unlock()
	if !c.Admit() {
		return false
	}
	c.Made(engine.ResultBytes(r))
	return true
}

// end ends the counting.
func (c *charge) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server.responses.Add(-c.bytes)
	c.bytes, c.over = 0, true
}
