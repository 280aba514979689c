// Package wirefilemergeconflict has numbers that are not in order.
package wirefilemergeconflict

import "github.com/topogen/topogen/runtime/topo"

type Order struct {
	Account string
	Cents   int
}

type Feed struct{}

func (*Feed) Ping(out *FeedSender) error { return topo.Done }

type Till struct{}

func (*Till) ReceiveOrder(Order) {}
