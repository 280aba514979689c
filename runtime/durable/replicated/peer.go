package replicated

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/topogen/topogen/runtime/durable/client"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/internal/fields"
)

// peerScheme begins the URL of a node that has no server: the other nodes reach it over the
// connections of the group.
const peerScheme = "raft://"

// Kinds of calls between nodes, in the first byte of a request. A request of callDo then has
// operations as requests of the protocol, each with its length. A request of callConnect
// has the group, the pid and the id of a connection. A request of callConfirmed has the id
// of a connection, and how many of its messages the receiver has confirmed.
const (
	callDo        = 1
	callConnect   = 2
	callConfirmed = 3
)

// Operations of a call. The caller knows the order of the answers, so they need no ids.
const (
	corrID        = "1"
	operationsMax = 1024     // more than a batch of a worker
	callBytes     = 16 << 20 // of the operations; half of what package raft sends
)

// answerCall is the function that raft.Config.Called names: it carries out the operations of
// another node at this one, and does not forward them again.
func (n *Node) answerCall(ctx context.Context, request []byte, send func([]byte) error) error {
	d := newDecoder(request)
	switch kind := d.Byte(); kind {
	case callDo:
		return n.answerDo(ctx, &d, send)
	case callConnect:
		group, pid, id := string(d.Take(d.Uint())), string(d.Take(d.Uint())), string(d.Take(d.Uint()))
		if err := d.End(); err != nil {
			return err
		}
		return n.answerConnect(ctx, group, pid, id, send)
	case callConfirmed:
		id, count := string(d.Take(d.Uint())), d.Uint()
		if err := d.End(); err != nil {
			return err
		}
		return n.confirmations.add(id, count)
	default:
		return fmt.Errorf("replicated: calls of kind %d are not known", kind)
	}
}

func (n *Node) answerDo(ctx context.Context, d *decoder, send func([]byte) error) error {
	var requests []protocol.Request
	var ops []protocol.Operation
	for len(d.B) > 0 {
		text := d.Take(d.Uint())
		if d.Err != nil {
			return d.Err
		}
		r, err := protocol.DecodeRequest(text)
		switch {
		case err != nil:
			return fmt.Errorf("replicated: an operation of a call: %w", err)
		case len(ops) == operationsMax:
			return fmt.Errorf("replicated: a call has at most %d operations", operationsMax)
		}
		requests, ops = append(requests, r), append(ops, r.Op)
	}
	results, err := n.doAll(ctx, ops, true)
	if err != nil {
		return err
	}
	for i := range results {
		if err := send(protocol.AppendResponse(nil, &requests[i], &results[i])); err != nil {
			return err
		}
	}
	return nil
}

// peer is the backend of another node, over the connections of the group.
type peer struct {
	name string
	call func(ctx context.Context, node string, request []byte, receive func([]byte) error) error
}

// peerOf returns the backend for a URL with peerScheme.
func (n *Node) peerOf(url string) protocol.Backend {
	return peer{strings.TrimPrefix(url, peerScheme), n.machine.Call}
}

func (p peer) Do(ctx context.Context, op protocol.Operation) (protocol.Result, error) {
	results, err := p.DoAll(ctx, []protocol.Operation{op})
	if err != nil {
		return protocol.Result{}, err
	}
	return results[0], nil
}

// DoAll carries out operations. The limit of their time is that of a client.
func (p peer) DoAll(ctx context.Context, ops []protocol.Operation) ([]protocol.Result, error) {
	requests := make([]protocol.Request, len(ops))
	message := []byte{callDo}
	for i, op := range ops {
		if err := protocol.Check(op); err != nil {
			return refuseAll(ops, protocol.Result{Status: protocol.BadRequest, Error: err.Error()}), nil
		}
		requests[i] = protocol.Request{Head: protocol.Head{CorrID: corrID, Version: protocol.Version}, Op: op, ActionCorrID: corrID}
		message = fields.AppendText(message, protocol.AppendRequest(nil, &requests[i]))
	}
	if len(ops) > operationsMax || len(ops) > 1 && len(message) > callBytes {
		return p.halves(ctx, ops)
	}
	ctx, cancel := context.WithTimeout(ctx, client.TimeoutDefault)
	defer cancel()
	var results []protocol.Result
	err := p.call(ctx, p.name, message, func(part []byte) error {
		if len(results) == len(ops) {
			return errors.New("more answers than operations")
		}
		r, err := protocol.DecodeResponse(part, &requests[len(results)])
		results = append(results, r)
		return err
	})
	if err == nil && len(results) != len(ops) {
		err = fmt.Errorf("%d answers to %d operations", len(results), len(ops))
	}
	if err != nil {
		return nil, fmt.Errorf("replicated: the operations at %s: %w", p.name, err)
	}
	return results, nil
}

// halves carries out operations that are too large for one call.
func (p peer) halves(ctx context.Context, ops []protocol.Operation) ([]protocol.Result, error) {
	first, err := p.DoAll(ctx, ops[:len(ops)/2])
	if err != nil {
		return nil, err
	}
	second, err := p.DoAll(ctx, ops[len(ops)/2:])
	return append(first, second...), err
}

func refuseAll(ops []protocol.Operation, r protocol.Result) []protocol.Result {
	results := make([]protocol.Result, len(ops))
	for i := range results {
		results[i] = r
	}
	return results
}
