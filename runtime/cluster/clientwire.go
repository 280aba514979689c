package cluster

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"

	gogrpc "google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/topogen/topogen/runtime/cluster/table"
)

// The service for clients has the stream Connect, which carries the frames of a session
// in both directions, and the method Places, which returns a snapshot of the address
// table. Both use messages of google.protobuf, so that no code is generated for them.
const (
	clientService = "topogen.cluster.Clients"
	connectMethod = "/" + clientService + "/Connect"
	placesMethod  = "/" + clientService + "/Places"
	clientKey     = "topogen-client" // metadata: the name that the client has chosen
	clientPrefix  = "client:"        // of the names of clients among the peers; a node's name has no colon
)

const (
	clientsMax    = 1024 // connected clients of a node; each has a session with a window of 4 MiB
	clientNameMax = 64
	clientFrames  = 256 // frames that wait for the network; further ones are lost and sent again
)

// clients serves the clients of a node.
type clients struct {
	node *Node

	mu      sync.Mutex
	streams map[string]*clientStream // by name among the peers
}

// clientStream sends frames to a client.
type clientStream struct {
	frames chan []byte
	end    context.CancelFunc
}

func (c *clients) register(r gogrpc.ServiceRegistrar) {
	r.RegisterService(&gogrpc.ServiceDesc{
		ServiceName: clientService,
		HandlerType: (*any)(nil),
		Methods:     []gogrpc.MethodDesc{{MethodName: "Places", Handler: c.places}},
		Streams:     []gogrpc.StreamDesc{{StreamName: "Connect", Handler: c.connect, ServerStreams: true, ClientStreams: true}},
	}, c)
}

// places returns the address table to a client.
func (c *clients) places(_ any, ctx context.Context, decode func(any) error, between gogrpc.UnaryServerInterceptor) (any, error) {
	request := new(wrapperspb.StringValue)
	if err := decode(request); err != nil {
		return nil, err
	}
	answer := func(context.Context, any) (any, error) {
		if request.GetValue() != c.node.settings.Plan {
			return nil, status.Error(codes.FailedPrecondition, "the client was generated from another topology; generate it again")
		}
		return wrapperspb.Bytes(c.node.table.Replica().Append(nil)), nil
	}
	if between == nil {
		return answer(ctx, request)
	}
	return between(ctx, request, &gogrpc.UnaryServerInfo{Server: c, FullMethod: placesMethod}, answer)
}

// connect runs the stream of a client.
func (c *clients) connect(_ any, stream gogrpc.ServerStream) error {
	md, _ := metadata.FromIncomingContext(stream.Context())
	name := strings.Join(md.Get(clientKey), "")
	if name == "" || len(name) > clientNameMax {
		return status.Errorf(codes.InvalidArgument, "the name of a client must have 1 to %d bytes", clientNameMax)
	}
	name = clientPrefix + name
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	s := &clientStream{frames: make(chan []byte, clientFrames), end: cancel}
	if err := c.add(name, s); err != nil {
		return err
	}
	defer c.remove(name, s)
	go func() {
		defer cancel()
		for {
			m := new(wrapperspb.BytesValue)
			if err := stream.RecvMsg(m); err != nil {
				return
			}
			c.node.receive(name, [][]byte{m.GetValue()})
		}
	}()
	for {
		select {
		case f := <-s.frames:
			if err := stream.SendMsg(wrapperspb.Bytes(f)); err != nil {
				return err
			}
		case <-ctx.Done():
			return status.Error(codes.Canceled, "the stream has ended")
		case <-c.node.stop:
			return status.Error(codes.Unavailable, "the node stops")
		}
	}
}

// add makes s the stream of a client, in place of an earlier one.
func (c *clients) add(name string, s *clientStream) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.streams[name]; old != nil {
		old.end()
	} else if len(c.streams) >= clientsMax {
		return status.Errorf(codes.ResourceExhausted, "the node already has %d clients", clientsMax)
	}
	if c.streams == nil {
		c.streams = map[string]*clientStream{}
	}
	c.streams[name] = s
	c.node.post(func(h *happened) { h.alive = append(h.alive, alive{node: name, alive: true}) })
	return nil
}

func (c *clients) remove(name string, s *clientStream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.streams[name] == s {
		delete(c.streams, name)
		c.node.post(func(h *happened) { h.alive = append(h.alive, alive{node: name}) })
	}
}

// send sends a frame to a client, or loses it if the client is slow.
func (c *clients) send(name string, f []byte) {
	c.mu.Lock()
	s := c.streams[name]
	c.mu.Unlock()
	if s == nil {
		return
	}
	select {
	case s.frames <- f:
	default:
	}
}

// isClient reports whether a peer is a client.
func isClient(name string) bool { return strings.HasPrefix(name, clientPrefix) }

// fetchPlaces asks a node for the address table.
func fetchPlaces(ctx context.Context, conn *gogrpc.ClientConn, plan string) (*table.Replica, error) {
	answer := new(wrapperspb.BytesValue)
	if err := conn.Invoke(ctx, placesMethod, wrapperspb.String(plan), answer); err != nil {
		return nil, err
	}
	state, err := table.ReadState(answer.GetValue())
	if err != nil {
		return nil, err
	}
	r := table.NewReplica()
	r.Adopt(state)
	return r, nil
}

// errStreamEnded says that the stream of a client has ended without an error.
var errStreamEnded = errors.New("the node has ended the stream")

// orEnded returns a better error for the end of a stream.
func orEnded(err error) error {
	if errors.Is(err, io.EOF) {
		return errStreamEnded
	}
	return err
}
