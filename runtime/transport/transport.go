package transport

import (
	"crypto/sha256"
	"encoding/binary"
)

// Message is what one node sends to another.
type Message struct {
	Group   uint64 // whom it is for there, see [GroupID]
	Payload []byte // belongs to the transport once it was sent
	Class   Class  // what it may overtake; the zero value is Ordered
}

// Transport is a node's connection to the others. Its methods may be called from
// any goroutine.
type Transport interface {
	// Send hands messages over for the node with that name and never blocks. Each
	// arrives at most once, in the order that its [Class] says. A message is dropped
	// and counted if too much waits already, if there is no such peer, or if the
	// connection breaks; all others arrive.
	Send(to string, messages ...Message)

	// Handle says who gets the messages of a group; nil: nobody any more. There is
	// one call at a time for each peer, so receive should not wait for long: while
	// it does, nothing else of this peer is taken. The slices belong to receive.
	// What comes for a group without a handler is dropped and counted.
	Handle(group uint64, receive func(from string, payloads [][]byte))

	// SetPeer says where the node with that name listens.
	SetPeer(name, address string)

	// PeerAddress is where the node with that name listens, as that node itself said
	// when it connected to this one; ok is false if it has not. It is there for nodes
	// that SetPeer was not called for, too, as long as they are connected: what they
	// are answered is dropped until it is.
	PeerAddress(name string) (address string, ok bool)

	// RemovePeer forgets a peer. Messages that wait for it are dropped and counted.
	RemovePeer(name string)

	// Stats returns what has happened so far.
	Stats() Stats

	// Close ends all connections and goroutines and returns when no receive runs
	// any more. It must not be called in a receive. What waits is dropped and
	// counted.
	Close() error
}

// GroupID is the number of a group in messages: the first eight bytes of the
// SHA-256 of both names, with a zero byte between them. It is the same on every
// machine and in every release.
func GroupID(topology, group string) uint64 {
	sum := sha256.Sum256([]byte(topology + "\x00" + group))
	return binary.BigEndian.Uint64(sum[:])
}
