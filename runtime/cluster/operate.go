package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	gogrpc "google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/topogen/topogen/runtime/transport/grpc"
)

// answerBytesMax bounds an answer: 2^20 instances with names of processors and nodes of
// some 100 bytes.
const answerBytesMax = 256 << 20

// errAnswerTooLarge: the node sends more than any cluster has.
var errAnswerTooLarge = fmt.Errorf("cluster: the answer of the node has more than %d bytes", answerBytesMax)

// Operate asks the node that listens on an address. files are an operator's certificate,
// or nil. Errors of the node, and of the connection to it, have the method GRPCStatus.
func Operate(ctx context.Context, address string, files *grpc.TLS, c Command) (r Report, err error) {
	ctx, cancel := context.WithCancel(ctx) // ends the stream
	defer cancel()
	conn, err := grpc.Dial(address, files)
	if err != nil {
		return r, err
	}
	defer func() { _ = conn.Close() }()
	b, err := json.Marshal(c)
	if err != nil {
		return r, err
	}
	stream, err := conn.NewStream(ctx, &gogrpc.StreamDesc{StreamName: showStream, ServerStreams: true}, showMethod)
	if err != nil {
		return r, operateError(address, err)
	}
	// An error of SendMsg means that the stream has ended; RecvMsg returns the reason.
	if err := stream.SendMsg(wrapperspb.String(string(b))); err != nil && !errors.Is(err, io.EOF) {
		return r, operateError(address, err)
	}
	if err := stream.CloseSend(); err != nil {
		return r, operateError(address, err)
	}
	size := 0
	for {
		var answer wrapperspb.StringValue
		switch err := stream.RecvMsg(&answer); {
		case errors.Is(err, io.EOF):
			return r, r.complete(address)
		case err != nil:
			return r, operateError(address, err)
		}
		if size += len(answer.GetValue()); size > answerBytesMax {
			return r, errAnswerTooLarge
		}
		if err := r.add(answer.GetValue()); err != nil {
			return r, fmt.Errorf("cluster: the answer of %s: %w", address, err)
		}
	}
}

// Remove asks the node that listens on an address to remove another one from the address
// table. files are an operator's certificate, or nil. Errors of the node, and of the
// connection to it, have the method GRPCStatus, except for the reason of a refusal.
func Remove(ctx context.Context, address string, files *grpc.TLS, r Removal) (done Removed, err error) {
	conn, err := grpc.Dial(address, files)
	if err != nil {
		return done, err
	}
	defer func() { _ = conn.Close() }()
	b, err := json.Marshal(r)
	if err != nil {
		return done, err
	}
	var answer wrapperspb.StringValue
	if err := conn.Invoke(ctx, removeMethod, wrapperspb.String(string(b)), &answer); err != nil {
		return done, operateError(address, err)
	}
	if err := json.Unmarshal([]byte(answer.GetValue()), &done); err != nil {
		return done, fmt.Errorf("cluster: the answer of %s: %w", address, err)
	}
	if done.Node != r.Node {
		return done, fmt.Errorf("cluster: %s has answered for the node %.300q", address, done.Node)
	}
	return done, nil
}

// add adds a part of the answer.
func (r *Report) add(text string) error {
	var p answerPart
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return err
	}
	if p.View != nil {
		r.View = *p.View
	}
	r.Nodes = append(r.Nodes, p.Nodes...)
	r.Processors = append(r.Processors, p.Processors...)
	r.Edges = append(r.Edges, p.Edges...)
	r.Moves = append(r.Moves, p.Moves...)
	r.Containers = append(r.Containers, p.Containers...)
	return nil
}

// complete checks that the node has answered.
func (r *Report) complete(address string) error {
	if r.Node == "" {
		return fmt.Errorf("cluster: %s has sent an answer without the name of its node", address)
	}
	return nil
}

// operateError returns the node's own error, or an error of the connection.
func operateError(address string, err error) error {
	if s, ok := status.FromError(err); ok && s.Code() == codes.FailedPrecondition {
		return errors.New(s.Message())
	}
	return fmt.Errorf("cluster: %s: %w", address, err)
}
