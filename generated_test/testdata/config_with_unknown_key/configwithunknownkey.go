package configwithunknownkey

type Item struct{ N int }

type Feed struct{}

func (*Feed) Ping(out *FeedSender) error { return out.SendItem(Item{}) }

type Sink struct{ size int }

func (*Sink) ReceiveItem(Item) {}

type SinkConfig struct {
	Size int
	Name string
}

func NewSink(c SinkConfig) *Sink { return &Sink{c.Size} }
