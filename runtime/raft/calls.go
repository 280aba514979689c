package raft

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	gogrpc "google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/topogen/topogen/runtime/transport/grpc"
)

// A call is a stream. The caller sends the request, and the node answers with any number
// of parts. Request and parts are split into chunks, each in a
// google.protobuf.BytesValue. The first byte of a chunk says whether it is the last one.
const (
	callService = "topogen.raft.Calls"
	callMethod  = "Call"
	callGroup   = "topogen-group-bin" // the group in the metadata

	callChunk      = 256 << 10 // bytes: other calls of the connection wait for one
	callRequestMax = 32 << 20  // bytes: a batch of the largest requests of durable promises
	callPartMax    = 64 << 20  // bytes: a task of durable promises with everything that it has recorded

	callMore, callLast = 0, 1 // the first byte of a chunk
)

// errNoCalls is the error of a call if the nodes do not use gRPC.
var errNoCalls = errors.New("raft: calls need a group of nodes that listen on their addresses")

// calls serves and makes the calls between the nodes of the groups that share a listener.
type calls struct {
	mu     sync.Mutex
	called map[string]func(context.Context, []byte, func([]byte) error) error // by group
	peers  map[string]*gogrpc.ClientConn                                      // by address
	closed bool
}

func newCalls() *calls {
	return &calls{called: map[string]func(context.Context, []byte, func([]byte) error) error{}, peers: map[string]*gogrpc.ClientConn{}}
}

func (c *calls) register(r gogrpc.ServiceRegistrar) {
	r.RegisterService(&gogrpc.ServiceDesc{
		ServiceName: callService,
		HandlerType: (*any)(nil),
		Streams: []gogrpc.StreamDesc{{
			StreamName: callMethod, ServerStreams: true, ClientStreams: true,
			Handler: func(_ any, stream gogrpc.ServerStream) error { return c.handle(stream) },
		}},
	}, c)
}

// serve passes the calls of a group to a function, until the returned function is called.
func (c *calls) serve(group string, called func(context.Context, []byte, func([]byte) error) error) (end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if called != nil {
		c.called[group] = called
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.called, group)
	}
}

// handle answers a call. The interceptor has refused callers that are not nodes.
func (c *calls) handle(stream gogrpc.ServerStream) error {
	group := ""
	if md, ok := metadata.FromIncomingContext(stream.Context()); ok && len(md.Get(callGroup)) == 1 {
		group = md.Get(callGroup)[0]
	}
	c.mu.Lock()
	called := c.called[group]
	c.mu.Unlock()
	if called == nil {
		return status.Errorf(codes.Unavailable, "no group %.100q answers calls here: the node is starting, or about to end", group)
	}
	request, err := receiveChunks(stream, callRequestMax)
	if err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	if err := called(stream.Context(), request, func(part []byte) error { return sendChunks(stream, part) }); err != nil {
		return status.Error(codes.FailedPrecondition, err.Error())
	}
	return nil
}

// messageStream is either end of a stream.
type messageStream interface {
	SendMsg(m any) error
	RecvMsg(m any) error
}

func sendChunks(s messageStream, b []byte) error {
	for {
		n := min(len(b), callChunk)
		chunk := make([]byte, 1, 1+n)
		if n == len(b) {
			chunk[0] = callLast
		}
		if err := s.SendMsg(wrapperspb.Bytes(append(chunk, b[:n]...))); err != nil {
			return err
		}
		if b = b[n:]; len(b) == 0 {
			return nil
		}
	}
}

// receiveChunks receives a request or a part. It returns io.EOF if the stream has ended
// before its first chunk.
func receiveChunks(s messageStream, limit int) (b []byte, err error) {
	for first := true; ; first = false {
		var m wrapperspb.BytesValue
		switch err := s.RecvMsg(&m); {
		case err == io.EOF && !first:
			return nil, io.ErrUnexpectedEOF
		case err != nil:
			return nil, err
		}
		chunk := m.GetValue()
		switch {
		case len(chunk) == 0 || chunk[0] > callLast:
			return nil, errors.New("raft: a chunk of a call has an unknown form")
		case len(chunk) == 1 && chunk[0] == callMore:
			return nil, errors.New("raft: a chunk of a call is empty")
		case len(b)+len(chunk)-1 > limit:
			return nil, fmt.Errorf("raft: a call has more than %d bytes", limit)
		}
		if b = append(b, chunk[1:]...); chunk[0] == callLast {
			return b, nil
		}
	}
}

// Call sends a request to another node of the group, which answers with Config.Called. receive
// gets the parts of the answer, one after the other; its error ends the call. The
// connection has the address and the certificates of the group. A request has at most 32
// MiB, and a part at most 64 MiB.
//
// After an error the request may have been answered, or may still be.
func (m *Machine[S, U, R]) Call(ctx context.Context, node string, request []byte, receive func(part []byte) error) error {
	n, err := m.running()
	if err != nil {
		return err
	}
	if n.listener == nil {
		return errNoCalls
	}
	for _, member := range n.Status().Members {
		if member.Name == node {
			return n.listener.call(ctx, member.Address, n.config.GroupName, request, receive)
		}
	}
	return fmt.Errorf("raft: %q is not a member of group %q", node, n.config.GroupName)
}

func (l *listener) call(ctx context.Context, address, group string, request []byte, receive func([]byte) error) error {
	if len(request) > callRequestMax {
		return fmt.Errorf("raft: a call must have at most %d bytes, got %d", callRequestMax, len(request))
	}
	conn, err := l.connect(address)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(ctx, callGroup, group))
	defer cancel()
	stream, err := conn.NewStream(ctx, &gogrpc.StreamDesc{StreamName: callMethod, ServerStreams: true, ClientStreams: true}, "/"+callService+"/"+callMethod)
	if err != nil {
		return operateError(address, err)
	}
	if err := sendChunks(stream, request); err != nil && err != io.EOF { // RecvMsg returns the reason of an io.EOF
		return operateError(address, err)
	}
	if err := stream.CloseSend(); err != nil {
		return operateError(address, err)
	}
	for {
		part, err := receiveChunks(stream, callPartMax)
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return operateError(address, err)
		}
		if err := receive(part); err != nil {
			return err
		}
	}
}

// connect returns the connection for the calls to an address.
func (l *listener) connect(address string) (*gogrpc.ClientConn, error) {
	c := l.calls
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errNodeStopped
	}
	if conn := c.peers[address]; conn != nil {
		return conn, nil
	}
	dial := grpc.Dial
	var files *grpc.TLS
	switch {
	case l.files != (grpc.TLS{}):
		files = &l.files
	case !l.key.Insecure:
		dial = func(address string, _ *grpc.TLS) (*gogrpc.ClientConn, error) {
			return grpc.DialThrough(address, nil, grpc.LoopbackDialer())
		}
	}
	conn, err := dial(address, files)
	if err != nil {
		return nil, err
	}
	c.peers[address] = conn
	return conn, nil
}

// close ends the connections for calls.
func (c *calls) close() (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, conn := range c.peers {
		err = errors.Join(err, conn.Close())
	}
	return err
}
