// Package count holds numbers that one goroutine sets and others read.
//
// An atomic store in Go is sequentially consistent: on amd64 an exchange, some
// twenty cycles, and a message that stays on its worker would pay for several.
// Where nobody relies on more than "what was written before is seen before", a
// plain store does on amd64, where the processor keeps stores in order, and words
// are not torn (https://go.dev/ref/mem#restrictions). Elsewhere, and under -race,
// the store is an atomic one.
package count

import (
	"sync/atomic"
	"unsafe"
)

// Count is a number with one writer; the zero value is zero.
type Count struct {
	_ [0]atomic.Uint64 // aligned to eight bytes, on 32-bit machines too
	n uint64
}

// Load returns the count; what was written before it was stored is seen.
func (c *Count) Load() uint64 { return atomic.LoadUint64(&c.n) }

// Store sets the count before anything that the caller reads from then on.
func (c *Count) Store(n uint64) { atomic.StoreUint64(&c.n, n) }

// Own returns the count to its writer, who needs no order.
func (c *Count) Own() uint64 { return c.n }

// CompareAndSwap sets the count where it is still the one expected.
func (c *Count) CompareAndSwap(old, n uint64) bool {
	return atomic.CompareAndSwapUint64(&c.n, old, n)
}

// Pointer is a pointer with one writer; the zero value is nil.
type Pointer[T any] struct{ p *T }

// Load returns the pointer; what was written before it was stored is seen.
func (p *Pointer[T]) Load() *T {
	return (*T)(atomic.LoadPointer((*unsafe.Pointer)(unsafe.Pointer(&p.p))))
}

// Own returns the pointer to its writer, who needs no order.
func (p *Pointer[T]) Own() *T { return p.p }
