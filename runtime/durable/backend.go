package durable

import (
	"context"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// A Backend carries out the operations of the protocol: an engine in this process, or a
// client of a server.
type Backend = protocol.Backend

// A Connection delivers the messages for one process of a group.
type Connection = protocol.Connection

// A Batcher is a Backend that carries out several operations in their order with one
// write to the disk. A worker uses it, if the backend has it, to record a step.
// Operations after a refused one are carried out too.
type Batcher interface {
	DoAll(ctx context.Context, ops []protocol.Operation) ([]protocol.Result, error)
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
