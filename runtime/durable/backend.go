package durable

import (
	"context"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// A Backend carries out the operations of the protocol: an engine in this process, or a
// client of a server. Use makes a Backend of either.
//
// Do returns when the result is on disk. Its error means that the outcome is unknown, for
// example because the connection broke; a refused operation is a Result with a Status of
// 400 or more. Do is called from many goroutines.
type Backend interface {
	Do(ctx context.Context, op protocol.Operation) (protocol.Result, error)
	// Connect delivers the messages for a group's process until the connection is closed.
	Connect(group, pid string) (Connection, error)
}

// A Connection delivers the messages for one process of a group. The channel is closed
// when the connection ends.
type Connection interface {
	Messages() <-chan protocol.Message
	Close()
}

// A Batcher is a Backend that carries out several operations in their order with one
// write to the disk. A worker uses it, if the backend has it, to record a step.
// Operations after a refused one are carried out too.
type Batcher interface {
	DoAll(ctx context.Context, ops []protocol.Operation) ([]protocol.Result, error)
}

// Use makes a Backend of a value whose Connect returns a type of its own.
func Use[C Connection](b interface {
	Do(ctx context.Context, op protocol.Operation) (protocol.Result, error)
	Connect(group, pid string) (C, error)
}) Backend {
	u := used{do: b.Do, connect: func(group, pid string) (Connection, error) {
		c, err := b.Connect(group, pid)
		if err != nil {
			return nil, err // not a nil C, which is not a nil Connection
		}
		return c, nil
	}}
	if batcher, ok := b.(Batcher); ok {
		return usedBatcher{u, batcher}
	}
	return u
}

// A used is the Backend that Use makes.
type used struct {
	do      func(context.Context, protocol.Operation) (protocol.Result, error)
	connect func(group, pid string) (Connection, error)
}

func (u used) Do(ctx context.Context, op protocol.Operation) (protocol.Result, error) {
	return u.do(ctx, op)
}
func (u used) Connect(group, pid string) (Connection, error) { return u.connect(group, pid) }

type usedBatcher struct {
	used
	Batcher
}

// doAll carries out operations in their order, with one write if the backend can.
func doAll(ctx context.Context, b Backend, ops []protocol.Operation) ([]protocol.Result, error) {
	if batcher, ok := b.(Batcher); ok && len(ops) > 1 {
		return batcher.DoAll(ctx, ops)
	}
	results := make([]protocol.Result, 0, len(ops))
	for _, op := range ops {
		result, err := b.Do(ctx, op)
		if err != nil {
			return nil, err
		}
		results = append(results, result)
	}
	return results, nil
}
