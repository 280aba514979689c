// Package names is a case of generated_test: the generated names of the reference.
package names

import (
	"context"

	"github.com/topogen/topogen/runtime/topo"
)

type (
	Raw      struct{ Text string }
	Order    struct{ Account string }
	Rejected struct{ Text string }
	Quote    struct{ Account string }
	Price    struct{ Cents int }
)

type Feed struct{}

func (*Feed) Ping(out *FeedSender) error {
	if err := out.SendRaw(Raw{"ann"}); err != nil {
		return err
	}
	return topo.Done
}

type Parser struct{}

func (*Parser) ReceiveRawFromFeed(ctx context.Context, m *Raw, out *ParserSender) error {
	out.SendOrderToPricing(Order{m.Text})
	return out.SendRejected(Rejected{m.Text})
}

type Pricing struct{}

func (*Pricing) ReceiveOrder(m Order, out interface{ SendOrder(Order) }) { out.SendOrder(m) }
func (*Pricing) ReceiveQuote(Quote) Price                                { return Price{250} }

type Audit struct{ Orders int }

func (a *Audit) ReceiveOrderFromPricing(Order) { a.Orders++ }
func (*Audit) ReceiveRejected(*Rejected) error { return nil }
func (*Audit) ReceiveTick(topo.Tick)           {}
