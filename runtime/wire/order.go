package wire

import (
	"bytes"
	"slices"
	"sync"
)

// Order puts the pairs of a map into an order that depends on the map alone, where
// bytes are compared: each replica of a state writes the same. A nil Order leaves
// them as they are.
//
//	order := wire.Ordered(b, len(m.Prices))
//	for k, v := range m.Prices {
//		… // append a pair
//		order.Add(b)
//	}
//	order.Sort(b)
type Order struct {
	ends  []int // of the pairs; before them the first one's beginning
	pairs []span
	spare []byte
}

type span struct{ begin, end int }

var orders = sync.Pool{New: func() any { return new(Order) }}

const orderKeptMax = 1 << 20 // bytes of an Order that is used again: one large map does not hold its memory for ever

// Ordered is for n pairs that will be appended to b.
func Ordered(b []byte, n int) *Order {
	if n < 2 {
		return nil
	}
	o := orders.Get().(*Order)
	o.ends = append(slices.Grow(o.ends[:0], n+1), len(b))
	return o
}

// Add says that a pair has been appended to b.
func (o *Order) Add(b []byte) {
	if o != nil {
		o.ends = append(o.ends, len(b))
	}
}

// Sort puts the pairs at the end of b in the order of their bytes.
func (o *Order) Sort(b []byte) {
	if o == nil {
		return
	}
	o.pairs = o.pairs[:0]
	for i, end := range o.ends[1:] {
		o.pairs = append(o.pairs, span{o.ends[i], end})
	}
	slices.SortFunc(o.pairs, func(x, y span) int { return bytes.Compare(b[x.begin:x.end], b[y.begin:y.end]) })
	start := o.ends[0]
	o.spare = append(o.spare[:0], b[start:]...)
	at := start
	for _, p := range o.pairs {
		at += copy(b[at:], o.spare[p.begin-start:p.end-start])
	}
	if cap(o.spare)+8*cap(o.ends)+16*cap(o.pairs) <= orderKeptMax {
		orders.Put(o)
	}
}
