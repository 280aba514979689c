// Package idlers has 100,000 sources without work.
package idlers

import "github.com/topogen/topogen/runtime/topo"

//go:generate go tool topogen build

// Note is the message type.
type Note struct{}

// Source has nothing to send, and Sink receives nothing.
type (
	Source struct{}
	Sink   struct{}
)

func (*Source) Ping(*SourceSender) error { return topo.Idle }

func (*Sink) ReceiveNote(*Note) {}
