// Package pricing has processors for a topology that imports it: no generated file
// says here which methods are handlers. The findings are in package shop.
package pricing

import "context"

// Order is a message.
type Order struct{ Account string }

// Out sends what Engine gives.
type Out interface{ SendOrder(Order) }

// Engine keeps everything.
type Engine struct {
	last *Order
	out  Out
	ctx  context.Context
}

// ReceiveOrder is a handler.
func (e *Engine) ReceiveOrder(ctx context.Context, m *Order, out Out) { // want ReceiveOrder:`keeps 3 parameters`
	e.last = m
	e.out = out
	e.ctx = ctx
}

// Finish is a handler that keeps nothing.
func (e *Engine) Finish(ctx context.Context, out Out) { out.SendOrder(Order{}) }

// ReceiveLegacy is not a handler: no edge carries such a message.
func (e *Engine) ReceiveLegacy(m *Order) { e.last = m } // want ReceiveLegacy:`keeps 1 parameters`

// Careful keeps copies.
type Careful struct{ last Order }

// ReceiveOrder is a handler.
func (c *Careful) ReceiveOrder(ctx context.Context, m *Order, out Out) { c.last = *m }

// Parcel is a message that is a pointer.
type Parcel struct{ Weight int }

// Owner gets messages that are pointers.
type Owner struct{ last *Parcel }

// ReceiveParcel is a handler.
func (o *Owner) ReceiveParcel(m *Parcel) { o.last = m } // want ReceiveParcel:`keeps 1 parameters`

// Book is the state of a state machine.
type Book struct{ changes []*Change }

// Change is the update of that state machine.
type Change struct{ Cents int }

// Update keeps the pointer.
func (c *Change) Update(b *Book) error { // want Update:`keeps 1 parameters`
	b.changes = append(b.changes, c)
	return nil
}
