package main

import (
	"context"

	"github.com/topogen/topogen/runtime/durable"
)

// Each handler below makes one request to a service outside. The id of its execution is the
// idempotency key: it is the same when the handler is called again after a crash, so the
// service recognizes a request that it has carried out already.

// Stock reserves items in the warehouse.
type Stock struct{ world *client }

func NewStock() (*Stock, error) { return &Stock{newClient()}, nil }

func (s *Stock) ReceiveReserve(ctx durable.Context, m Reserve) (Reserved, error) {
	number, err := s.world.request(ctx, "reserve", request{Order: m.Order, Subject: m.Item})
	return Reserved{number}, err
}

func (s *Stock) ReceiveRelease(ctx durable.Context, m Release) error {
	_, err := s.world.request(ctx, "release", request{Order: m.Order, Subject: m.Number})
	return err
}

// Payments charges cards at the bank.
type Payments struct{ world *client }

func NewPayments() (*Payments, error) { return &Payments{newClient()}, nil }

func (p *Payments) ReceiveCharge(ctx durable.Context, m Charge) (Charged, error) {
	number, err := p.world.request(ctx, "charge", request{Order: m.Order, Subject: m.Card, Cents: m.Cents})
	return Charged{number}, err
}

func (p *Payments) ReceiveRefund(ctx durable.Context, m Refund) error {
	_, err := p.world.request(ctx, "refund", request{Order: m.Order, Subject: m.Number})
	return err
}

// Shipping hands parcels to a carrier.
type Shipping struct{ world *client }

func NewShipping() (*Shipping, error) { return &Shipping{newClient()}, nil }

func (s *Shipping) ReceiveShip(ctx durable.Context, m Ship) (Shipped, error) {
	parcel, err := s.world.request(ctx, "ship", request{Order: m.Order, Subject: m.Customer})
	return Shipped{parcel}, err
}

// request makes a request to a service, in a step of its own: its answer is on disk before the
// handler returns.
func (c *client) request(ctx durable.Context, path string, r request) (string, error) {
	r.Key = ctx.ID()
	return durable.Step(ctx, path, func(step context.Context) (string, error) { return c.post(step, path, r) })
}
