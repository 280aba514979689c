package engine

import (
	"math"
	"time"

	"github.com/topogen/topogen/runtime/durable/core"
)

// took notes that an unblock message has left the engine. The committer deletes it from
// the store.
func (h *hub) took(id core.Delivered) {
	h.acks = append(h.acks, id)
	switch len(h.acks) {
	case 1:
		h.acksSince = h.elapsed()
		signal(h.wake)
	case acksMax:
		signal(h.wake)
	}
}

// acksAt returns when the acknowledgements must be stored, also without other work.
func (h *hub) acksAt() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case len(h.acks) == 0:
		return math.MaxInt64
	case len(h.acks) >= acksMax:
		return h.acksSince
	}
	return h.acksSince + ackDelayMax
}

// takeAcks removes up to n acknowledgements.
func (h *hub) takeAcks(n int) []core.Delivered {
	h.mu.Lock()
	defer h.mu.Unlock()
	n = min(n, len(h.acks))
	taken := h.acks[:n:n]
	if h.acks = h.acks[n:]; len(h.acks) == 0 {
		h.acks = nil
	}
	return taken
}

// returnAcks puts acknowledgements back after a transaction that failed.
func (h *hub) returnAcks(acks []core.Delivered) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.acks = append(acks, h.acks...)
}

// acked notes that messages are no longer in the store.
func (h *hub) acked(acks []core.Delivered) {
	if len(acks) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, id := range acks {
		delete(h.flying, id)
	}
}
