// Package count has numbers and pointers that one goroutine writes and others read.
//
// An atomic store in Go is sequentially consistent. On amd64 it is an exchange, about
// twenty cycles, and a message that stays on its worker would need several. Often it is
// enough that everything written before the store is visible to a goroutine that reads
// the new value. On amd64 a plain store guarantees this: the processor keeps stores in
// order, and words are not torn (https://go.dev/ref/mem#restrictions). On other
// processors, and with -race, the store is atomic.
package count

import (
	"sync/atomic"
	"unsafe"
)

// Count is a number with one writer; the zero value is zero.
type Count struct {
	_ [0]atomic.Uint64 // aligned to eight bytes, on 32-bit computers too
	n uint64
}

// Load returns the count. Everything written before the count was stored is visible to
// the caller.
func (c *Count) Load() uint64 { return atomic.LoadUint64(&c.n) }

// Store sets the count, ordered before all later reads of the caller.
func (c *Count) Store(n uint64) { atomic.StoreUint64(&c.n, n) }

// Own returns the count to its writer, which needs no synchronization.
func (c *Count) Own() uint64 { return c.n }

// CompareAndSwap sets the count if it still has the value old.
func (c *Count) CompareAndSwap(old, n uint64) bool {
	return atomic.CompareAndSwapUint64(&c.n, old, n)
}

// Pointer is a pointer with one writer; the zero value is nil.
type Pointer[T any] struct{ p *T }

// Load returns the pointer. Everything written before the pointer was stored is visible
// to the caller.
func (p *Pointer[T]) Load() *T {
	return (*T)(atomic.LoadPointer((*unsafe.Pointer)(unsafe.Pointer(&p.p))))
}

// Own returns the pointer to its writer, which needs no synchronization.
func (p *Pointer[T]) Own() *T { return p.p }
