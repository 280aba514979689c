package keyofwrongtype

type Item struct{ F float64 }

type Feed struct{}

func (*Feed) Ping(out *FeedSender) error { return out.SendItem(Item{}) }

type Sink struct{}

func (*Sink) ReceiveItem(Item) {}
