// Package durable has a topology with durable edges of every kind.
package durable

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/topogen/topogen/runtime/durable"
	"github.com/topogen/topogen/runtime/topo"
)

type PlaceOrder struct {
	OrderID  string
	Customer string
	Cents    int
	Wait     time.Duration // between the payment and the shipment
}

type Receipt struct {
	Payment, Parcel string
	Days            int
}

type Ref struct{ Number int64 }

type Cancel struct {
	Instance int
	Ref      *Ref
}

type Box struct {
	Name string
	Kind uint8
}

type Charge struct {
	OrderID string
	Cents   int
}

type Payment struct{ Number string }

type Ship struct{ OrderID string }

type Parcel struct{ Number string }

type Entry struct{ Customer, Text string }

// World is what the handlers change outside of the topology. It survives crashes.
type World struct {
	mu      sync.Mutex
	Charged map[string]int // charges by order
	Calls   map[string]int // calls of each step
	Failing map[string]int // how many further charges of an order fail
	Refused string         // the order whose shipment fails
	Entries []Entry
	Letters []topo.DeadLetter
	// Send is called in place of the workflow, if it is not nil.
	Send func(ctx durable.Context, out *OrdersSender) error
}

func (w *World) call(step string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.Calls == nil {
		w.Calls = make(map[string]int)
	}
	w.Calls[step]++
}

// charge charges a card once for each order.
func (w *World) charge(order string, cents int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.Failing[order] > 0 {
		w.Failing[order]--
		return errors.New("the bank does not answer")
	}
	if w.Charged == nil {
		w.Charged = make(map[string]int)
	}
	w.Charged[order] = cents
	return nil
}

func (w *World) refund(order string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.Charged, order)
}

type Orders struct{ World *World }

func (o *Orders) ReceivePlaceOrder(ctx durable.Context, m PlaceOrder, out *OrdersSender) (Receipt, error) {
	if o.World.Send != nil {
		return Receipt{}, o.World.Send(ctx, out)
	}
	began := durable.Now(ctx)
	out.SendEntry(Entry{m.Customer, "placed " + m.OrderID})
	payment, err := out.AskCharge(ctx, Charge{m.OrderID, m.Cents})
	if err != nil {
		return Receipt{}, err
	}
	if err := durable.Sleep(ctx, m.Wait); err != nil {
		return Receipt{}, err
	}
	parcel, err := out.StartShip(ctx, Ship{m.OrderID})
	if err != nil {
		return Receipt{}, err
	}
	number, err := parcel.Wait(ctx)
	if err != nil {
		_, failed := durable.Step(ctx, "refund", func(context.Context) (bool, error) {
			o.World.call("refund")
			o.World.refund(m.OrderID)
			return true, nil
		})
		return Receipt{}, errors.Join(err, failed)
	}
	return Receipt{payment.Number, number.Number, int(durable.Now(ctx).Sub(began).Hours() / 24)}, nil
}

func (o *Orders) ReceiveCancel(ctx durable.Context, m *Cancel) error {
	_, err := durable.Step(ctx, "cancel", func(context.Context) (int64, error) {
		o.World.call("cancel")
		return m.Ref.Number, nil
	})
	return err
}

func (o *Orders) ReceiveBoxed(ctx durable.Context, m *Box, out interface {
	AskCharge(context.Context, Charge) (Payment, error)
}) error {
	_, err := out.AskCharge(ctx, Charge{m.Name, int(m.Kind)})
	return err
}

func (o *Orders) ReceiveEntry(ctx context.Context, m Entry) error {
	o.World.mu.Lock()
	defer o.World.mu.Unlock()
	o.World.Entries = append(o.World.Entries, m)
	return nil
}

type Payments struct{ World *World }

func (p *Payments) ReceiveCharge(ctx durable.Context, m Charge) (Payment, error) {
	return durable.Step(ctx, "charge", func(context.Context) (Payment, error) {
		p.World.call("charge")
		return Payment{"payment of " + m.OrderID}, p.World.charge(m.OrderID, m.Cents)
	})
}

type Shipping struct{ World *World }

func (s *Shipping) ReceiveShip(ctx durable.Context, m Ship) (Parcel, error) {
	if m.OrderID == s.World.Refused {
		return Parcel{}, fmt.Errorf("nobody ships %s", m.OrderID)
	}
	return durable.Step(ctx, "ship", func(context.Context) (Parcel, error) {
		s.World.call("ship")
		return Parcel{"parcel of " + m.OrderID}, nil
	})
}

type Audit struct{}

func (*Audit) ReceiveEntry(m Entry, out *AuditSender) { out.SendEntry(m) }

type Morgue struct{ World *World }

func (m *Morgue) ReceiveDeadLetter(d topo.DeadLetter) {
	m.World.mu.Lock()
	defer m.World.mu.Unlock()
	m.World.Letters = append(m.World.Letters, d)
}
