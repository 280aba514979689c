//go:build !amd64 || race

package count

import (
	"sync/atomic"
	"unsafe"
)

// StoreRelease sets the count. On amd64, later reads of the caller may take effect
// before it.
func (c *Count) StoreRelease(n uint64) { atomic.StoreUint64(&c.n, n) }

// StoreRelease sets the pointer. On amd64, later reads of the caller may take effect
// before it.
func (p *Pointer[T]) StoreRelease(to *T) {
	atomic.StorePointer((*unsafe.Pointer)(unsafe.Pointer(&p.p)), unsafe.Pointer(to))
}
