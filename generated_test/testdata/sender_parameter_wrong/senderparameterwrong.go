package senderparameterwrong

type Item struct{ N int }

type Note struct{ N int }

type Feed struct{}

func (*Feed) Ping(out *FeedSender) error { return out.SendItem(Item{}) }

type Sink struct{}

func (*Sink) ReceiveItem(Item, interface{ SendOther(Note) }) {}
func (*Sink) Finish(interface{ SendNote(Item) })             {}
func (*Sink) Ping(out SinkSender) error                      { return nil }

type Last struct{}

func (*Last) ReceiveNote(_ Note, _ *LastSender) {}
