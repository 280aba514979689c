package deadletterhandlermissing

type Item struct{}

type Feed struct{}

func (*Feed) Ping(out *FeedSender) error { return out.SendItem(Item{}) }

type Sink struct{}

func (*Sink) ReceiveItem(Item) error { return nil }

type Morgue struct{}
