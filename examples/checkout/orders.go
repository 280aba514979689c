package main

import (
	"fmt"
	"time"

	"github.com/topogen/topogen/runtime/durable"
)

// packing is how long an order is packed. An execution that sleeps is in no process, so most
// kills happen while many orders are being packed.
const packing = 400 * time.Millisecond

// Orders carries out orders: it reserves the item, charges the card and ships the parcel. If
// one of them fails for good, it undoes those that came before.
type Orders struct{}

// ReceivePlaceOrder is a durable function. When its process is killed, another process calls it
// again, and the calls that were answered before return the same answers.
func (*Orders) ReceivePlaceOrder(ctx durable.Context, m PlaceOrder, out *OrdersSender) (Receipt, error) {
	reserved, err := out.AskReserve(ctx, Reserve{m.Number, m.Item})
	if err != nil {
		return Receipt{Reason: reason("not reserved", err)}, nil
	}
	charged, err := out.AskCharge(ctx, Charge{m.Number, m.Card, m.Cents})
	if err != nil {
		return Receipt{Reason: reason("not paid", err)}, undo(ctx, m, out, reserved, nil)
	}
	if err := durable.Sleep(ctx, packing); err != nil {
		return Receipt{}, err
	}
	shipped, err := out.AskShip(ctx, Ship{m.Number, m.Customer})
	if err != nil {
		return Receipt{Reason: reason("not shipped", err), Charge: charged.Number}, undo(ctx, m, out, reserved, &charged)
	}
	return Receipt{Completed: true, Charge: charged.Number, Parcel: shipped.Parcel}, nil
}

// undo puts the item back and, if the card was charged, returns the money, at the same time.
func undo(ctx durable.Context, m PlaceOrder, out *OrdersSender, reserved Reserved, charged *Charged) error {
	release, err := out.StartRelease(ctx, Release{m.Number, reserved.Number})
	if err != nil {
		return err
	}
	handles := []durable.Handle[durable.None]{release}
	if charged != nil {
		refund, err := out.StartRefund(ctx, Refund{m.Number, m.Card, charged.Number})
		if err != nil {
			return err
		}
		handles = append(handles, refund)
	}
	_, err = durable.All(ctx, handles...)
	return err
}

func reason(what string, err error) string { return fmt.Sprintf("%s: %v", what, err) }
