package broadcastwithoutclone

type Item struct{ List []int }

type Feed struct{}

func (*Feed) Ping(out *FeedSender) error { return out.SendItem(Item{}) }

type Sink struct{}

func (*Sink) ReceiveItem(Item) {}
