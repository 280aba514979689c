// Package clusterdurable has durable edges in a cluster whose nodes keep the store.
package clusterdurable

import (
	"context"
	"fmt"

	"github.com/topogen/topogen/runtime/durable"
)

// Accounts is the state of the ledger.
type Accounts struct{ Cents int64 }

// Transfer changes the ledger.
type Transfer struct{ Cents int64 }

// Update implements the update of the ledger.
func (t *Transfer) Update(a *Accounts) error { a.Cents += t.Cents; return nil }

// Order is a message with steps to carry out.
type Order struct {
	ID    string
	Steps int
}

// Parcel is the last step of an order.
type Parcel struct{ ID string }

// Taken says that an order is complete.
type Taken struct{ ID string }

// Receipt says what the steps returned.
type Receipt struct{ Sum int }

// Orders carries out orders.
type Orders struct {
	Step func(order string, step int) error
}

// ReceiveOrder carries out the steps of an order one after the other, and ships it.
func (o *Orders) ReceiveOrder(ctx durable.Context, m Order, out *OrdersSender) (Receipt, error) {
	var r Receipt
	for i := range m.Steps {
		n, err := durable.Step(ctx, fmt.Sprint("step ", i), func(context.Context) (int, error) { return i + 1, o.Step(m.ID, i) })
		if err != nil {
			return r, err
		}
		r.Sum += n
	}
	shipped, err := out.AskParcel(ctx, Parcel{m.ID})
	r.Sum += shipped.Sum
	out.SendTaken(Taken{m.ID})
	return r, err
}

// Shipping ships parcels.
type Shipping struct{}

// ReceiveParcel returns 1 for each parcel.
func (*Shipping) ReceiveParcel(ctx durable.Context, m Parcel) (Receipt, error) {
	n, err := durable.Step(ctx, "ship", func(context.Context) (int, error) { return 1, nil })
	return Receipt{n}, err
}

// Stock counts orders.
type Stock struct {
	Take func(order string) error
}

// ReceiveTaken counts an order.
func (s *Stock) ReceiveTaken(m Taken) error { return s.Take(m.ID) }
