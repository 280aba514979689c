package inputhandlerswrong

type Item struct{}

type Feed struct{}

func (*Feed) Ping(out *FeedSender) error { return out.SendItem(Item{}) }

type Sink struct{}

func (*Sink) ReceiveItem(Item)               {}
func (*Sink) InputClosed(in EdgeIndex)       {}
func (*Sink) InputRecovered() error          { return nil }
func (*Sink) ProcessorRestarted(name string) {}
func (*Sink) AllInputsClosed() bool          { return true }

// Deaf would hear, if something said what becomes of its inputs.
type Deaf struct{}

func (*Deaf) ReceiveItem(Item) {}
func (*Deaf) InputClosed()     {}
func (*Deaf) AllInputsClosed() {}
