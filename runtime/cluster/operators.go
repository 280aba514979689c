package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	gogrpc "google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/topogen/topogen/runtime/transport/grpc"
)

// The operators' service has the stream Show, which only reads, and the method Remove. The
// requests and each part of the answers are JSON in a google.protobuf.StringValue, so that any
// gRPC client can call the service. An answer of Show has many parts, because a cluster may
// have 2^20 instances. The transport refuses callers without the certificate of an operator,
// if it has TLS.
const (
	operatorService = "topogen.cluster.Operators"
	showStream      = "Show"
	showMethod      = "/" + operatorService + "/" + showStream
	removeName      = "Remove"
	removeMethod    = "/" + operatorService + "/" + removeName

	requestBytesMax = 4 << 10 // the longest names of a node and of a processor, escaped
	partRecords     = 512     // records in a part of an answer: less than 1 MiB with the longest names, and gRPC accepts 4 MiB
)

// Names of commands of operators.
const (
	ShowStatus = "status" // the node, the processors and the edges
	ShowNodes  = "nodes"  // the node and the nodes
	ShowTable  = "table"  // the node and the instances
)

// Command is a question of an operator to a node. It changes nothing.
type Command struct {
	Show string `json:"show"` // ShowStatus, ShowNodes or ShowTable

	// Processor and Node choose the instances of ShowTable; "": all.
	Processor string `json:"processor,omitempty"`
	Node      string `json:"node,omitempty"`
}

// Report is the answer to a Command. It has the lists that the command asks for.
type Report struct {
	View
	Containers []Container `json:"containers"`
}

// answerPart is a part of an answer. The first one has the view without its lists.
type answerPart struct {
	View       *View           `json:"view,omitempty"`
	Nodes      []NodeView      `json:"nodes,omitempty"`
	Processors []ProcessorView `json:"processors,omitempty"`
	Edges      []EdgeView      `json:"edges,omitempty"`
	Moves      []Move          `json:"moves,omitempty"`
	Containers []Container     `json:"containers,omitempty"`
}

// operators answers the commands to a node.
type operators struct {
	view   func() *View
	remove func(ctx context.Context, by string, r Removal) (Removed, error)
	shows  *answering
}

func (o *operators) register(r gogrpc.ServiceRegistrar) {
	r.RegisterService(&gogrpc.ServiceDesc{
		ServiceName: operatorService,
		HandlerType: (*any)(nil),
		Methods:     []gogrpc.MethodDesc{{MethodName: removeName, Handler: o.handleRemoval}},
		Streams:     []gogrpc.StreamDesc{{StreamName: showStream, Handler: o.handle, ServerStreams: true}},
	}, o)
}

// handle is called by the gRPC server for Show. A call counts when its request has arrived,
// so that a caller that sends none keeps no other one from its answer.
func (o *operators) handle(_ any, stream gogrpc.ServerStream) error {
	request := new(wrapperspb.StringValue)
	if err := stream.RecvMsg(request); err != nil {
		return err
	}
	c, err := parseCommand(request.GetValue())
	if err != nil {
		return err
	}
	end, err := o.shows.begin(stream.Context())
	if err != nil {
		return err
	}
	defer end()
	v := o.view()
	if err := c.check(v); err != nil {
		return status.Error(codes.FailedPrecondition, err.Error())
	}
	return c.answer(v, func(p *answerPart) error {
		if err := stream.Context().Err(); err != nil {
			return status.FromContextError(err).Err()
		}
		b, err := json.Marshal(p)
		if err != nil {
			return err
		}
		return stream.SendMsg(wrapperspb.String(string(b)))
	})
}

// parseCommand reads a command in JSON.
func parseCommand(text string) (c Command, err error) {
	if err := parseRequest(text, &c); err != nil {
		return c, err
	}
	switch c.Show {
	case ShowStatus, ShowNodes, ShowTable:
		return c, nil
	}
	return c, status.Errorf(codes.InvalidArgument, "no command %.100q", c.Show)
}

// parseRequest reads a request in JSON.
func parseRequest(text string, request any) error {
	if len(text) > requestBytesMax {
		return status.Errorf(codes.InvalidArgument, "the command has %d bytes, at most %d are allowed", len(text), requestBytesMax)
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(request); err != nil {
		return status.Errorf(codes.InvalidArgument, "the command: %v", err)
	}
	return nil
}

// handleRemoval is called by the gRPC server for Remove. The interceptor between refuses
// callers that are not operators.
func (o *operators) handleRemoval(_ any, ctx context.Context, decode func(any) error, between gogrpc.UnaryServerInterceptor) (any, error) {
	request := new(wrapperspb.StringValue)
	if err := decode(request); err != nil {
		return nil, err
	}
	answer := func(ctx context.Context, _ any) (any, error) { return o.answerRemoval(ctx, request.GetValue()) }
	if between == nil {
		return answer(ctx, request)
	}
	return between(ctx, request, &gogrpc.UnaryServerInfo{Server: o, FullMethod: removeMethod}, answer)
}

func (o *operators) answerRemoval(ctx context.Context, text string) (any, error) {
	var r Removal
	if err := parseRequest(text, &r); err != nil {
		return nil, err
	}
	by := "unknown, because the node has no TLS"
	if id, ok := grpc.Caller(ctx); ok {
		by = id.Operator
	}
	removed, err := o.remove(ctx, by, r)
	if err != nil {
		return nil, status.Error(codes.FailedPrecondition, err.Error())
	}
	b, err := json.Marshal(removed)
	if err != nil {
		return nil, err
	}
	return wrapperspb.String(string(b)), nil
}

// check refuses names that the cluster does not have, so that a wrong name does not look
// like an empty table.
func (c *Command) check(v *View) error {
	known := c.Processor == ""
	for i := range v.Processors {
		known = known || v.Processors[i].Name == c.Processor
	}
	if !known {
		return fmt.Errorf("topology %s has no processor %.300q", v.Topology, c.Processor)
	}
	known = c.Node == ""
	for i := range v.Nodes {
		known = known || v.Nodes[i].Name == c.Node
	}
	if !known {
		return fmt.Errorf("node %s knows no node %.300q", v.Node, c.Node)
	}
	return nil
}

// answer sends the parts of the answer.
func (c *Command) answer(v *View, send func(*answerPart) error) error {
	head := *v
	head.Nodes, head.Processors, head.Edges, head.Moves = nil, nil, nil, nil
	if err := send(&answerPart{View: &head}); err != nil {
		return err
	}
	switch c.Show {
	case ShowStatus:
		if err := pages(v.Processors, func(l []ProcessorView) error { return send(&answerPart{Processors: l}) }); err != nil {
			return err
		}
		if err := pages(v.Edges, func(l []EdgeView) error { return send(&answerPart{Edges: l}) }); err != nil {
			return err
		}
		if err := pages(v.Moves, func(l []Move) error { return send(&answerPart{Moves: l}) }); err != nil {
			return err
		}
		return pages(v.Nodes, func(l []NodeView) error { return send(&answerPart{Nodes: l}) })
	case ShowNodes:
		return pages(v.Nodes, func(l []NodeView) error { return send(&answerPart{Nodes: l}) })
	}
	var page []Container
	for at := range v.Containers() {
		if c.Processor != "" && at.Processor != c.Processor || c.Node != "" && at.Node != c.Node {
			continue
		}
		if page = append(page, at); len(page) == partRecords {
			if err := send(&answerPart{Containers: page}); err != nil {
				return err
			}
			page = page[:0]
		}
	}
	return pages(page, func(l []Container) error { return send(&answerPart{Containers: l}) })
}

// pages calls send with parts of a list.
func pages[T any](list []T, send func([]T) error) error {
	for len(list) > 0 {
		n := min(len(list), partRecords)
		if err := send(list[:n]); err != nil {
			return err
		}
		list = list[n:]
	}
	return nil
}
