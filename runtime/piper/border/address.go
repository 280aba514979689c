package border

import (
	"encoding/binary"

	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/queue"
)

// Address selects one instance of a processor that runs on every node.
type Address struct {
	slot     int    // of the link that leads there: an instance of this node, or all other nodes
	node     string // its node; "" for this one
	instance int
}

// Slot is the index of the sender's link to the address: the index of an instance on this
// node, or the next index for all other nodes. It is -1 if the node does not exist.
func (a Address) Slot() int { return a.slot }

// Aim returns the address of that instance on a node which the route local would select
// there, of n instances. In one process, which has no nodes, the name is ignored.
func Aim[S ~string](o *piper.Out, node S, n int) Address {
	a := Address{slot: o.Index() % n, instance: o.Index() % n}
	a.aim(of(o.Border()), string(node), n)
	return a
}

// AimFrom is Aim for messages from outside.
func AimFrom[S ~string](x *piper.External, node S, n int) Address {
	var a Address
	a.aim(of(x.Border()), string(node), n)
	return a
}

func (a *Address) aim(b *Border, node string, n int) {
	if b == nil {
		return
	}
	switch here, known := b.nodes.Find(node); {
	case here:
	case known:
		a.slot, a.node = n, node
	default:
		a.slot = -1
	}
}

// Origin is the address of the instance that sends along the link.
func Origin(l *piper.Link) Address { return OriginOf(l.SendingUnit()) }

// OriginOf is the address of a unit for replies to it. A guest has the address of the
// instance for which it stands, if that instance runs on every node.
func OriginOf(u *piper.Unit) Address {
	a := Address{slot: u.Index(), instance: u.Index()}
	if g, ok := u.Cell().(*guest); ok && g.border.Processor(u.Processor()).Others {
		a.slot, a.node = g.border.Instances(u.Processor()), *g.node.Load()
	}
	return a
}

// Aimed is a message for one instance of a processor that has its own instances on every
// node.
type Aimed[M any] struct {
	Message M
	to      Address
}

// AimedAt returns a message with its address.
func AimedAt[M any](to Address, m M) Aimed[M] { return Aimed[M]{m, to} }

// node is the node of the receiver; "" for this one.
func (a *Aimed[M]) node() string { return a.to.node }

// Evicted makes an Aimed a queue.Evictee if its message is one.
func (a *Aimed[M]) Evicted() {
	if m, ok := any(&a.Message).(queue.Evictee); ok {
		m.Evicted()
	}
}

// Envelope implements piper.Enveloped.
func (a *Aimed[M]) Envelope() piper.Envelope {
	if e, ok := any(&a.Message).(piper.Enveloped); ok {
		return e.Envelope()
	}
	return piper.Envelope{Message: a.Message, Fail: func(error) {}}
}

// nodeOf is the node to which an element of a queue goes; "" if all nodes get it that the
// queue leads to.
func nodeOf(element any) string {
	if a, ok := element.(interface{ node() string }); ok {
		return a.node()
	}
	return ""
}

// EncodeAimed returns the Encode of messages for one instance. An encoded message begins
// with the number of that instance as a varint.
func EncodeAimed[M any](encode Encode[M]) Encode[Aimed[M]] {
	return func(b []byte, a *Aimed[M], limit int) ([]byte, error) {
		return encode(binary.AppendUvarint(b, uint64(a.to.instance)), &a.Message, limit)
	}
}
