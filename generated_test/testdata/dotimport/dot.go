// Package dotimport imports New from errors, which is what the output declares too.
package dotimport

import . "errors"

type Item struct{}

var errNone = New("none")

type Feed struct{}

func (*Feed) Ping(out *FeedSender) error { return errNone }

type Sink struct{}

func (*Sink) ReceiveItem(Item) {}
