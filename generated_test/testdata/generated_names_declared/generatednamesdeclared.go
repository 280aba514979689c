package generatednamesdeclared

import "github.com/topogen/topogen/runtime/topo"

type Item struct{}

type Sender struct{}

type Feed struct{}

func (*Feed) Ping(out *FeedSender) error { return topo.Done }

type Sink struct{}

func (*Sink) ReceiveItem(Item) error     { return nil }
func (*Sink) ReceiveSender(Sender) error { return nil }

// SinkInputs is what the tracker of the sink's inputs would be called.
type SinkInputs struct{}

type SinkInput struct{}

func (*SinkInput) ReceiveItem(Item) {}

type Morgue struct{}

func (*Morgue) ReceiveDeadLetter(topo.DeadLetter) {}

// DeadLetterFeedSinkItem is what a generated function would be called.
var DeadLetterFeedSinkItem = 1
