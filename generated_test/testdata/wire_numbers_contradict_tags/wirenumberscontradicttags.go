// Package wirenumberscontradicttags has tags that say other numbers than the file.
package wirenumberscontradicttags

import "github.com/topogen/topogen/runtime/topo"

type Order struct {
	Account string `topo:"3"` // 1 in the file
	Cents   int    `topo:"4"` // that of a field which is gone
	Note    string `topo:"2"` // that of Paid
	Paid    bool
}

type Feed struct{}

func (*Feed) Ping(out *FeedSender) error { return topo.Done }

type Till struct{}

func (*Till) ReceiveOrder(Order) {}
