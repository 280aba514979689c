package protocol

import "context"

// A Backend carries out operations: an engine in the same process (package engine), or
// a server (package client).
type Backend interface {
	// Do carries out an operation and returns when its effects are on disk. A refusal is a
	// Result with a Status of 400 or more. An error means that the outcome is not known:
	// the operation may have been carried out, now or later.
	Do(ctx context.Context, op Operation) (Result, error)
	// Connect receives the messages for a process of a group: those for the addresses
	// poll://any@group, poll://any@group/pid and poll://uni@group/pid.
	Connect(group, pid string) (Connection, error)
}

// A Connection receives the messages of a process. A program must receive from Messages
// until it closes the connection, because a connection whose buffer is full loses
// messages of kind execute, which the server repeats after the retry timeout.
type Connection interface {
	// Messages returns the channel of messages. It is closed after Close, and when the
	// backend ends.
	Messages() <-chan Message
	Close()
}

// A Confirmer is a Connection for a receiver that passes messages on and may fail to.
type Confirmer interface {
	Connection
	// Confirm must be called before the first message is received. A message then counts as
	// delivered when the receiver calls Confirmed, and not when it receives the message. A
	// message that was not confirmed before Close goes to another connection of the address,
	// or waits for one.
	Confirm()
	// Confirmed says that the message that was received last has been passed on. It must be
	// called before the next message is received.
	Confirmed()
}

// HeaderForwarded is the header of requests that one node of a group has forwarded to
// another. The value is "true".
const HeaderForwarded = "Topogen-Forwarded"
