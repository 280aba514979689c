package handlerofwrongshape

type Item struct{ N int }

type Feed struct{}

func (*Feed) Ping(out *FeedSender) error { return out.SendItem(Item{}) }

type Sink struct{}

func (*Sink) ReceiveItem(Item, int) string { return "" }
