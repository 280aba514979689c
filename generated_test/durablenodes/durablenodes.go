// Package durablenodes has durable edges whose store is on the nodes of a state machine.
package durablenodes

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

// Receipt says what the steps returned.
type Receipt struct{ Sum int }

// Orders carries out orders.
type Orders struct {
	Step func(order string, step int) error
}

// ReceiveOrder carries out the steps of an order one after the other.
func (o *Orders) ReceiveOrder(ctx durable.Context, m Order) (Receipt, error) {
	var r Receipt
	for i := range m.Steps {
		n, err := durable.Step(ctx, fmt.Sprint("step ", i), func(context.Context) (int, error) { return i + 1, o.Step(m.ID, i) })
		if err != nil {
			return r, err
		}
		r.Sum += n
	}
	return r, nil
}
