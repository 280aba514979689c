package queue

import (
	"sync/atomic"

	"github.com/topogen/topogen/runtime/internal/race"
)

// count is a number that one goroutine sets and others read.
//
// An atomic store is an exchange on amd64, some twenty cycles, and a message
// that stays on its worker pays for it twice. There the other end of the queue
// runs on the same goroutine, which needs no atomic store; who else reads the
// count wants a figure, and Go's memory model promises such a reader a value
// that was written (https://go.dev/ref/mem#restrictions: words are not torn).
// Under -race all stores are atomic, so that real races stand out.
type count struct {
	_ [0]atomic.Uint64 // aligned to eight bytes, on 32-bit machines too
	n uint64
}

func (c *count) Load() uint64 { return atomic.LoadUint64(&c.n) }

func (c *count) set(n uint64, local bool) {
	if local && !race.Enabled {
		c.n = n
		return
	}
	atomic.StoreUint64(&c.n, n)
}

// Store sets the count for everybody to see.
func (c *count) Store(n uint64) { atomic.StoreUint64(&c.n, n) }
