package transport

import (
	"crypto/sha256"
	"encoding/binary"
)

// AddressBytesMax is the length of the longest address of a node: a DNS name, a colon and a port. A topology
// file has the same limit.
const AddressBytesMax = 253 + 1 + 5

// Message is what one node sends to another.
type Message struct {
	Group   uint64 // the receiving group, see [GroupID]
	Payload []byte // belongs to the transport after Send
	Class   Class  // what the message may overtake; the zero value is Ordered
}

// Transport connects a node to the others. Its methods may be called from any
// goroutine.
type Transport interface {
	// Send queues messages for the node with a name and never blocks. Each message
	// arrives at most once, in the order that its [Class] defines. A message is dropped
	// and counted if the queue is full, if there is no such peer, or if the connection
	// breaks. All others arrive.
	Send(to string, messages ...Message)

	// Handle sets the function that receives the messages of a group; nil removes it.
	// There is one call at a time for each peer. No other message of this peer is
	// handled during the call, so receive must not wait for long. The slices belong to
	// receive. Messages for a group without a handler are dropped and counted.
	Handle(group uint64, receive func(from string, payloads [][]byte))

	// SetPeer sets the address where the node with a name listens.
	SetPeer(name, address string)

	// PeerAddress returns the address where the node with a name listens, as this node
	// announced it when it connected; ok is false if it has not. While a node is
	// connected, PeerAddress also works if SetPeer was never called for it. Messages to
	// such a node are dropped until SetPeer is called.
	PeerAddress(name string) (address string, ok bool)

	// RemovePeer forgets a peer. Its queued messages are dropped and counted.
	RemovePeer(name string)

	// Stats returns the statistics so far.
	Stats() Stats

	// Close ends all connections and goroutines, and returns when no receive runs any
	// more. It must not be called in a receive. Queued messages are dropped and
	// counted.
	Close() error
}

// GroupID returns the number of a group in messages: the first eight bytes of the
// SHA-256 of both names, with a zero byte between them. It is the same on every host
// and in every release.
func GroupID(topology, group string) uint64 {
	sum := sha256.Sum256([]byte(topology + "\x00" + group))
	return binary.BigEndian.Uint64(sum[:])
}
