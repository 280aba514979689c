package edges

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/topogen/topogen/runtime/durable"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/piper"
)

// A Sender is the runtime's part of the sender of a processor: a *piper.Out or a
// *piper.External.
type Sender interface {
	Durable() piper.DurableEdges
}

// Errors of sends.
var (
	// ErrNoID: the field that identifies the execution is empty.
	ErrNoID = errors.New("durable: the message has no id")
	// ErrOutside: a durable function has sent a message with a context that is not its own,
	// or in a step. The message would be sent again on each replay.
	ErrOutside = errors.New("durable: a durable function must send with its own context, outside of steps")
	// ErrOtherEdge: the id is not of an execution of this edge.
	ErrOtherEdge = errors.New("durable: the id belongs to another edge")
)

// Start sends a message along a durable edge with a new id. It returns when the promise of the
// message is on disk. In a durable function, the message is a child of its execution.
func Start[R any](ctx context.Context, s Sender, edge int, m any) (durable.Handle[R], error) {
	e, err := edgesOf(ctx, s)
	if err != nil {
		return durable.Handle[R]{}, err
	}
	id := ""
	if !durable.Within(ctx) {
		id = e.byIndex[edge].call(e.config.Topology, e.fresh())
	}
	return start[R](ctx, e, e.byIndex[edge], m, id)
}

// StartID is Start for an edge whose messages have an id: any text without U+0000 of at most 2,000
// bytes with the names of the topology and the edge. A second message with the same id starts
// nothing; its handle has the result of the first. The error matches durable.ErrTaken if the promise
// with this id was made for something else.
func StartID[R any](ctx context.Context, s Sender, edge int, m any, id string) (durable.Handle[R], error) {
	e, err := edgesOf(ctx, s)
	if err != nil {
		return durable.Handle[R]{}, err
	}
	if id == "" {
		return durable.Handle[R]{}, fmt.Errorf("%w: %s", ErrNoID, e.byIndex[edge].Function)
	}
	return start[R](ctx, e, e.byIndex[edge], m, e.byIndex[edge].call(e.config.Topology, id))
}

// call is the id of a call that starts an execution.
func (e *Edge) call(topology, id string) string {
	return topology + ":" + e.Function + ":" + id
}

// edgesOf is the carrier of the sender's durable edges.
func edgesOf(ctx context.Context, s Sender) (*Carrier, error) {
	if out, ok := s.(*piper.Out); ok && out.Works() && !durable.Within(ctx) {
		return nil, ErrOutside
	}
	if x, ok := s.(*piper.External); ok {
		if err := x.Accepts(); err != nil {
			return nil, err
		}
	}
	return carrierOf(s)
}

func carrierOf(s Sender) (*Carrier, error) {
	e, ok := s.Durable().(*Carrier)
	if !ok {
		return nil, errors.New("durable: the sender does not belong to a topology that New has made")
	}
	return e, nil
}

func start[R any](ctx context.Context, e *Carrier, edge *Edge, m any, id string) (durable.Handle[R], error) {
	w, err := e.useIn(ctx)
	if err != nil {
		return durable.Handle[R]{}, err
	}
	call := durable.Call{ID: id, Func: edge.Function, Arg: m, Timeout: edge.Timeout, Target: protocol.Target(e.config.Topology)}
	if e.replays() {
		if !durable.Within(ctx) {
			return durable.Get[R](w, durable.PromiseID(id)), nil
		}
		return durable.Start[R](ctx, w, call)
	}
	h, err := durable.Start[R](ctx, w, call)
	if err == nil && !h.Settled() { // else it was not started, or had ended before
		e.figures.add(edge.Index, h.ID())
	}
	return h, err
}

// Find returns the handle of an execution that was started earlier, perhaps by another process.
// id is the ID of its first handle. The error matches durable.ErrNotFound if the store does not
// have it.
func Find[R any](ctx context.Context, s Sender, edge int, id string) (durable.Handle[R], error) {
	e, err := carrierOf(s)
	if err != nil {
		return durable.Handle[R]{}, err
	}
	if prefix := e.byIndex[edge].call(e.config.Topology, ""); !strings.HasPrefix(id, prefix) {
		return durable.Handle[R]{}, fmt.Errorf("%w: the id of a handle of %s begins with %q, got %q", ErrOtherEdge, e.byIndex[edge].Function, prefix, id)
	}
	w, err := e.useIn(ctx)
	if err != nil {
		return durable.Handle[R]{}, err
	}
	h, err := durable.FindCall[R](ctx, w, id, durable.Call{Func: e.byIndex[edge].Function})
	if errors.Is(err, durable.ErrTaken) {
		err = fmt.Errorf("%w: %w", ErrOtherEdge, err)
	}
	return h, err
}

// Recorded is the handle that the sender of a recorder returns: its result is the zero value.
func Recorded[R any]() (durable.Handle[R], error) {
	var zero R
	return durable.Resolved("recorded", zero)
}
