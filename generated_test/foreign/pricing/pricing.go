// Package pricing has processors that do not import the topology.
package pricing

import (
	"context"

	"github.com/topogen/topogen/generated_test/foreign/model/v2"
	"github.com/topogen/topogen/generated_test/foreign/quote"
	"github.com/topogen/topogen/generated_test/foreign/topo"
)

// Out is the sender that an Engine needs.
type Out interface{ SendPoint(topo.Point) }

type Engine struct{ Orders, Pages int }

func (e *Engine) ReceiveOrder(ctx context.Context, m *model.Order, out Out) error {
	e.Orders++
	out.SendPoint(topo.Point{X: 1})
	return ctx.Err()
}

func (e *Engine) ReceivePoint(m topo.Point) quote.Quote { return quote.Quote{Cents: 100 * m.Y} }

func (e *Engine) ReceiveLines(m *model.Page[string]) { e.Pages += len(m.Items) }

type hiddenOut interface{ SendPointToSink(topo.Point) }

// Hidden has an unexported interface for its sender.
type Hidden struct{ Orders int }

func (h *Hidden) ReceiveOrder(m model.Order, out hiddenOut) {
	h.Orders++
	out.SendPointToSink(topo.Point{X: 2})
}

// Inline has an interface literal for its sender.
type Inline struct{ Orders int }

func (i *Inline) ReceiveOrder(m model.Order, out interface {
	SendPoint(topo.Point)
	SendRow([4]int) error
}) error {
	i.Orders++
	out.SendPoint(topo.Point{X: 3})
	return out.SendRow([4]int{3})
}

// Of is generic.
type Of[T any] struct {
	Orders int
	Last   T
}

func (o *Of[T]) ReceiveOrder(m *model.Order, out Out) {
	o.Orders++
	out.SendPoint(topo.Point{X: 4})
}
