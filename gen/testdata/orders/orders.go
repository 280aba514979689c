// Package orders declares what the topologies of FuzzGenerate name, handlers
// included, so that wiring is emitted too, not the ports alone.
package orders

import "github.com/topogen/topogen/runtime/topo"

type (
	Raw struct {
		Line    string
		Account uint32
		Done    bool
		B       []byte
	}
	Order struct {
		Account string
		ID      int
	}
	Price struct{ ID int }
	Blob  struct{ P *int }
)

func (b Blob) Clone() Blob { return b }

type Feed struct{}

func (*Feed) Ping(out *FeedSender) error { return topo.Done }

type Parser struct{}

func (*Parser) ReceiveRaw(m *Raw)          {}
func (*Parser) ReceiveOrder(m Order) Price { return Price{} }
func (*Parser) ReceivePrice(m Price) error { return nil }
func (*Parser) ReceiveBlob(m Blob)         {}
func (*Parser) ReceiveTick(topo.Tick)      {}

type Audit struct{}

func (*Audit) ReceiveRaw(m Raw)                  {}
func (*Audit) ReceiveOrder(m Order) Price        { return Price{} }
func (*Audit) ReceivePrice(m Price)              {}
func (*Audit) ReceiveBlob(m *Blob)               {}
func (*Audit) ReceiveTick(topo.Tick) error       { return nil }
func (*Audit) ReceiveDeadLetter(topo.DeadLetter) {}
