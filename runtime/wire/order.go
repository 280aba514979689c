package wire

import (
	"bytes"
	"slices"
	"sync"
)

// Order sorts the encoded pairs of a map, so that equal maps have equal bytes. Replicas
// of a state need this. A nil Order does nothing.
//
//	order := wire.Ordered(b, len(m.Prices))
//	for k, v := range m.Prices {
//		… // append a pair
//		order.Add(b)
//	}
//	order.Sort(b)
type Order struct {
	ends  []int // the beginning of the first pair, then the ends of all pairs
	pairs []span
	spare []byte
}

type span struct{ begin, end int }

var orders = sync.Pool{New: func() any { return new(Order) }}

const orderKeptMax = 1 << 20 // bytes of an Order that is reused, so that one large map does not keep its memory forever

// Ordered returns an Order for n pairs that will be appended to b.
func Ordered(b []byte, n int) *Order {
	if n < 2 {
		return nil
	}
	o := orders.Get().(*Order)
	o.ends = append(slices.Grow(o.ends[:0], n+1), len(b))
	return o
}

// Add records that a pair was appended to b.
func (o *Order) Add(b []byte) {
	if o != nil {
		o.ends = append(o.ends, len(b))
	}
}

// Sort sorts the pairs at the end of b by their bytes.
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
