package grpc

import (
	"fmt"
	"sync/atomic"
)

// budget limits the memory of all assemblies of a transport.
type budget struct {
	left atomic.Int64
}

func (b *budget) take(n int) bool {
	if b.left.Add(-int64(n)) >= 0 {
		return true
	}
	b.left.Add(int64(n))
	return false
}

func (b *budget) give(n int) { b.left.Add(int64(n)) }

// assemblies reassembles the large messages of one stream: at most one for each group,
// and together no more bytes than one message may have.
type assemblies struct {
	budget    *budget
	max       uint64               // of all open messages together
	open      map[uint64]*assembly // by group
	openBytes uint64               // the sum of their sizes
	refused   func()               // called when a message is dropped because the budget is used up
}

type assembly struct {
	size     uint64
	received uint64
	data     []byte
	dropped  bool // the budget was used up: the remaining chunks are ignored
}

func newAssemblies(b *budget, limit uint64, refused func()) *assemblies {
	return &assemblies{budget: b, max: limit, open: make(map[uint64]*assembly), refused: refused}
}

// add adds a chunk, and returns the message if it is complete. An error means that the
// peer violates the protocol.
func (a *assemblies) add(c chunk) (payload []byte, err error) {
	m, err := a.find(c)
	if err != nil {
		return nil, err
	}
	if !m.dropped && !a.grow(m, len(c.data)) {
		a.budget.give(cap(m.data))
		m.data, m.dropped = nil, true
		a.refused()
	}
	if !m.dropped {
		m.data = append(m.data, c.data...)
	}
	m.received += uint64(len(c.data))
	if m.received < m.size {
		return nil, nil
	}
	delete(a.open, c.group)
	a.openBytes -= m.size
	a.budget.give(cap(m.data)) // the receiver owns it now
	return m.data, nil
}

// find returns the message of a chunk.
func (a *assemblies) find(c chunk) (*assembly, error) {
	m := a.open[c.group]
	switch {
	case m == nil && c.offset == 0 && c.size > 0:
		if c.size > a.max || c.size > a.max-a.openBytes {
			return nil, fmt.Errorf("a message of %d bytes beside others of %d bytes: at most %d are allowed together", c.size, a.openBytes, a.max)
		}
		m = &assembly{size: c.size}
		a.open[c.group] = m
		a.openBytes += c.size
	case m == nil:
		return nil, fmt.Errorf("a chunk at %d of a message of %d bytes that has not begun", c.offset, c.size)
	case c.size != m.size || c.offset != m.received:
		return nil, fmt.Errorf("a chunk at %d of a message of %d bytes, want the chunk at %d of %d", c.offset, c.size, m.received, m.size)
	}
	if len(c.data) == 0 || uint64(len(c.data)) > m.size-m.received {
		return nil, fmt.Errorf("a chunk must have 1 to %[2]d bytes, got %[1]d", len(c.data), m.size-m.received)
	}
	return m, nil
}

// grow makes room for n more bytes. It doubles the buffer, so that memory is allocated
// for received data and not for the announced size.
func (a *assemblies) grow(m *assembly, n int) bool {
	if cap(m.data)-len(m.data) >= n {
		return true
	}
	room := int(min(m.size, uint64(max(2*cap(m.data), reassemblyGrowing, len(m.data)+n))))
	if !a.budget.take(room) {
		return false
	}
	data := append(make([]byte, 0, room), m.data...)
	a.budget.give(cap(m.data) + cap(data) - room)
	m.data = data
	return true
}

// end releases the messages that are not complete.
func (a *assemblies) end() {
	for _, m := range a.open {
		a.budget.give(cap(m.data))
	}
	clear(a.open)
	a.openBytes = 0
}
