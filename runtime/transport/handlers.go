package transport

import (
	"maps"
	"sync"
	"sync/atomic"
)

// Handlers is the table of receive functions by group, for implementations of
// [Transport]. Its zero value is empty.
type Handlers struct {
	mu    sync.Mutex // locks changes of the table
	table atomic.Pointer[map[uint64]func(from string, payloads [][]byte)]
}

// Set implements Handle of [Transport].
func (h *Handlers) Set(group uint64, receive func(from string, payloads [][]byte)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	table := make(map[uint64]func(string, [][]byte))
	if old := h.table.Load(); old != nil {
		maps.Copy(table, *old)
	}
	if receive == nil {
		delete(table, group)
	} else {
		table[group] = receive
	}
	h.table.Store(&table)
}

// Receive calls the receive function of a group, and counts the messages.
func (h *Handlers) Receive(from string, group uint64, payloads [][]byte, c *Counters) {
	var receive func(string, [][]byte)
	if table := h.table.Load(); table != nil {
		receive = (*table)[group]
	}
	if receive == nil {
		c.Unclaimed.Add(uint64(len(payloads)))
		return
	}
	size := 0
	for _, p := range payloads {
		size += len(p)
	}
	count := uint64(len(payloads)) // the slice belongs to receive
	receive(from, payloads)
	c.Received.Add(count)
	c.ReceivedBytes.Add(uint64(size))
}

// Counters are the counters of a [Traffic], safe for use by several goroutines, for
// implementations of [Transport].
type Counters struct {
	Sent, SentBytes, Received, ReceivedBytes, Dropped, Unclaimed, Refused atomic.Uint64
}

// Traffic returns the current counts.
func (c *Counters) Traffic() Traffic {
	return Traffic{
		Sent: c.Sent.Load(), SentBytes: c.SentBytes.Load(),
		Received: c.Received.Load(), ReceivedBytes: c.ReceivedBytes.Load(),
		Dropped: c.Dropped.Load(), Unclaimed: c.Unclaimed.Load(), Refused: c.Refused.Load(),
	}
}
