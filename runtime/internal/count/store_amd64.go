//go:build amd64 && !race

package count

// StoreRelease sets the count. Later reads of the caller may take effect before it.
func (c *Count) StoreRelease(n uint64) { c.n = n }

// StoreRelease sets the pointer. Later reads of the caller may take effect before it.
func (p *Pointer[T]) StoreRelease(to *T) { p.p = to }
