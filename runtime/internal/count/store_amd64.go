//go:build amd64 && !race

package count

// StoreRelease sets the count; what the caller reads from then on may be read
// before that.
func (c *Count) StoreRelease(n uint64) { c.n = n }

// StoreRelease sets the pointer, as that of a Count.
func (p *Pointer[T]) StoreRelease(to *T) { p.p = to }
