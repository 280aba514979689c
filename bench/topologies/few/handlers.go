// Package few is a topology on three nodes for benchmarks.
package few

//go:generate go tool topogen build

// Add adds to a counter.
type Add struct{ ID, N uint64 }

// Sum is the value of a counter.
type Sum struct{ N uint64 }

// Counter counts.
type Counter struct{ n uint64 }

// ReceiveAdd adds.
func (c *Counter) ReceiveAdd(m Add) Sum {
	c.n += m.N
	return Sum{c.n}
}
