package attemptswithoutclone

import "github.com/topogen/topogen/runtime/topo"

type Item struct{ Lines []string }

type Order struct{ Lines []string }

type Part struct{ Of map[string]int }

type Feed struct{}

func (*Feed) Ping(out *FeedSender) error { return topo.Done }

type Sink struct{}

func (*Sink) ReceiveItem(Item) error { return nil }

type Shared struct{}

func (*Shared) ReceiveOrder(Order) error { return nil }

type Hangs struct{}

func (*Hangs) ReceivePart(*Part) error { return nil }

type Piece struct{ Of []string }

type Stopped struct{}

func (*Stopped) ReceivePiece(*Piece) error { return nil }

type Sheet struct{ Of []string }

type Skips struct{}

func (*Skips) ReceiveSheet(*Sheet) error { return nil }

type Sibling struct{}

func (*Sibling) ReceiveTick(topo.Tick) {}

type Morgue struct{}

func (*Morgue) ReceiveDeadLetter(topo.DeadLetter) {}
