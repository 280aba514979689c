package cluster

import (
	"context"
	"strings"
	"sync"

	gogrpc "google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/topogen/topogen/runtime/transport"
)

const (
	// clientsMax bounds the clients that a node remembers: connected clients, and clients
	// that were connected within clientWindow. Each has a session, with a window of 4 MiB.
	// The node forgets clients that are not connected early, see clientroom.go.
	clientsMax = 1024
	// ownerMax bounds the clients with one certificate, so that a program that makes clients
	// without end leaves room for others.
	ownerMax = clientsMax / 4
)

// clients serves the clients of a node.
type clients struct {
	node   *Node
	places *answering // snapshots of the address table

	most int // clientsMax, and fewer in tests

	mu     sync.Mutex
	known  map[string]*knownClient // by name among the peers
	owners map[string]int          // number of known clients by certificate
}

// knownClient is a client that has a session with this node, or had one within
// clientWindow.
type knownClient struct {
	owner  string        // its certificate; "" without TLS
	stream *clientStream // nil if it is not connected
	via    string        // the node that passes on its frames, if it has no stream; "": none
}

// clientStream is the stream of a connected client.
type clientStream struct {
	frames chan []byte // to the client
	taken  chan struct{}
	end    context.CancelFunc
}

func newClients(n *Node) *clients {
	return &clients{node: n, places: newAnswering(), most: clientsMax, known: map[string]*knownClient{}, owners: map[string]int{}}
}

func (c *clients) register(r gogrpc.ServiceRegistrar) {
	r.RegisterService(&gogrpc.ServiceDesc{
		ServiceName: clientService,
		HandlerType: (*any)(nil),
		Methods:     []gogrpc.MethodDesc{{MethodName: "Places", Handler: c.handlePlaces}},
		Streams:     []gogrpc.StreamDesc{{StreamName: "Connect", Handler: c.handleConnect, ServerStreams: true, ClientStreams: true}},
	}, c)
}

// group is the number of the frames that nodes pass on for clients.
func (c *clients) group() uint64 {
	return transport.GroupID(c.node.settings.Topology, "cluster/clients")
}

var errNodeStarting = status.Error(codes.Unavailable, "the node has not joined the cluster yet")

// handlePlaces returns the address table to a client.
func (c *clients) handlePlaces(_ any, ctx context.Context, decode func(any) error, between gogrpc.UnaryServerInterceptor) (any, error) {
	request := new(wrapperspb.StringValue)
	if err := decode(request); err != nil {
		return nil, err
	}
	answer := func(ctx context.Context, _ any) (any, error) { return c.answerPlaces(ctx, request.GetValue()) }
	if between == nil {
		return answer(ctx, request)
	}
	return between(ctx, request, &gogrpc.UnaryServerInfo{Server: c, FullMethod: placesMethod}, answer)
}

func (c *clients) answerPlaces(ctx context.Context, request string) (*wrapperspb.BytesValue, error) {
	plan, revision, _ := strings.Cut(request, "\n")
	if plan != c.node.settings.Plan {
		return nil, status.Errorf(codes.FailedPrecondition,
			"the client was generated from another version of topology %s: generate its code from the file that the nodes use, and build it again", c.node.settings.Topology)
	}
	o := c.node.opened.Load()
	if o == nil || o.lookup == nil {
		return nil, errNodeStarting
	}
	if revision == o.lookup.replica.Revision().String() {
		return new(wrapperspb.BytesValue), nil
	}
	end, err := c.places.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	return wrapperspb.Bytes(o.lookup.replica.Append(nil)), nil
}

// handleConnect runs the stream of a client.
func (c *clients) handleConnect(_ any, stream gogrpc.ServerStream) error {
	md, _ := metadata.FromIncomingContext(stream.Context())
	name := strings.Join(md.Get(clientKey), "")
	if err := checkClientName(name); err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	if o := c.node.opened.Load(); o == nil || o.lookup == nil {
		return errNodeStarting
	}
	name = clientPrefix + name
	owner := ownerOf(stream.Context())
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	s := &clientStream{frames: make(chan []byte, clientFrames), taken: make(chan struct{}, clientFrames), end: cancel}
	if err := c.connect(ctx, name, owner, s); err != nil {
		return err
	}
	defer c.disconnected(name, s)
	if err := stream.SendHeader(nil); err != nil { // the client waits for it
		return err
	}
	go func() {
		defer cancel()
		c.receiveAll(ctx, stream, name, owner, s)
	}()
	for {
		select {
		case f := <-s.frames:
			if err := stream.SendMsg(wrapperspb.Bytes(f)); err != nil {
				return err
			}
		case <-ctx.Done():
			return status.Error(codes.Canceled, "the stream has ended")
		case <-c.node.ctx.Done():
			return status.Error(codes.Unavailable, "the node stops")
		}
	}
}

// receiveAll passes on the frames of a client until its stream ends, or the client sends
// something else.
func (c *clients) receiveAll(ctx context.Context, stream gogrpc.ServerStream, name, owner string, s *clientStream) {
	for {
		m := new(wrapperspb.BytesValue)
		if err := stream.RecvMsg(m); err != nil {
			return
		}
		to, f, ok := cutEnvelope(m.GetValue())
		if !ok {
			return
		}
		if to != "" && to != c.node.settings.node {
			if c.isNode(to) {
				c.pass(to, &passedOn{client: name, owner: owner, frame: f})
			}
			continue
		}
		if len(f) == 0 {
			continue
		}
		select {
		case s.taken <- struct{}{}: // the core receives from it when it has taken the frame
		case <-ctx.Done():
			return
		case <-c.node.ctx.Done():
			return
		}
		c.node.post(func(h *happened) { h.addFrame(frame{from: name, data: f, taken: s.taken}) })
	}
}

// isNode reports whether another node of the cluster has a name.
func (c *clients) isNode(name string) bool {
	o := c.node.opened.Load()
	return name != c.node.settings.node && o != nil && o.lookup != nil && o.lookup.replica.Node(name) != nil
}

// pass sends a frame of a client, or for a client, to another node.
func (c *clients) pass(to string, p *passedOn) {
	c.node.transport.Send(to, transport.Message{Group: c.group(), Payload: p.append(nil)})
}

// connect makes s the stream of a client, in place of an earlier one.
func (c *clients) connect(ctx context.Context, name, owner string, s *clientStream) error {
	for {
		c.mu.Lock()
		k, err := c.enter(name, owner)
		if err == nil {
			if k.stream != nil {
				k.stream.end()
			}
			k.stream, k.via = s, ""
			c.mu.Unlock()
			c.post(name)
			return nil
		}
		own := c.hasMost(owner)
		c.mu.Unlock()
		if status.Code(err) != codes.ResourceExhausted || !c.awaitRoom(ctx, owner, own) {
			return err
		}
	}
}

// enter returns a client, which is new if the node does not know it. The caller holds the
// lock.
func (c *clients) enter(name, owner string) (*knownClient, error) {
	if k := c.known[name]; k != nil {
		if k.owner != owner {
			return nil, status.Error(codes.PermissionDenied, "a client with another certificate has this name")
		}
		return k, nil
	}
	if c.hasMost(owner) {
		return nil, status.Errorf(codes.ResourceExhausted, "the node has %d clients with the certificate %s that are connected, or whose messages are not handled yet; close clients that are not needed", ownerMax, owner)
	}
	if len(c.known) >= c.most {
		return nil, status.Errorf(codes.ResourceExhausted, "the node has %d clients that are connected, or whose messages are not handled yet, and no room for another one", c.most)
	}
	k := &knownClient{owner: owner}
	c.known[name] = k
	c.owners[owner]++
	return k, nil
}

// hasMost reports whether a certificate has as many clients as it may have. The caller holds
// the lock.
func (c *clients) hasMost(owner string) bool { return owner != "" && c.owners[owner] >= ownerMax }

// disconnected records that a stream has ended.
func (c *clients) disconnected(name string, s *clientStream) {
	c.mu.Lock()
	if k := c.known[name]; k != nil && k.stream == s {
		k.stream = nil
	}
	c.mu.Unlock()
	c.post(name)
}

// post tells the core whether a client is connected. The mailbox asks for the state itself,
// so that the core learns of changes in their order.
func (c *clients) post(name string) {
	c.node.post(func(h *happened) {
		c.mu.Lock()
		defer c.mu.Unlock()
		k := c.known[name]
		h.alive = append(h.alive, alive{node: name, alive: k != nil && (k.stream != nil || k.via != ""), passedOn: k != nil && k.stream == nil})
	})
}

// receivePassed is called with frames that another node passes on.
func (c *clients) receivePassed(from string, payloads [][]byte) {
	for _, b := range payloads {
		var p passedOn
		if err := p.read(b); err != nil {
			continue // a node of another release
		}
		if p.toClient {
			c.sendTo(p.client, from, p.frame)
			continue
		}
		if !c.reachedBy(p.client, p.owner, from) {
			continue
		}
		c.node.post(func(h *happened) { h.addFrame(frame{from: p.client, data: p.frame}) })
	}
}

// reachedBy records that a node passes on the frames of a client. It returns false if the
// client is refused.
func (c *clients) reachedBy(name, owner, via string) bool {
	c.mu.Lock()
	k, err := c.enter(name, owner)
	changed := err == nil && k.stream == nil && k.via == ""
	if err == nil && k.stream == nil {
		k.via = via
	}
	own := c.hasMost(owner)
	c.mu.Unlock()
	if changed {
		c.post(name)
	}
	if status.Code(err) == codes.ResourceExhausted { // the client sends the frame again
		c.node.post(func(h *happened) { h.rooms = append(h.rooms, roomFor{owner: owner, own: own}) })
	}
	return err == nil
}

// sendTo sends a frame of another node to a client that is connected here.
func (c *clients) sendTo(name, node string, f []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.known[name]; k != nil && k.stream != nil && len(node) <= nodeNameMax && len(f) > 0 {
		k.stream.offer(appendEnvelope(nil, node, f))
	}
}

// send sends a frame to a client.
func (c *clients) send(name string, f []byte) {
	c.mu.Lock()
	k := c.known[name]
	var via string
	if k != nil && k.stream != nil {
		k.stream.offer(appendEnvelope(nil, "", f))
	} else if k != nil {
		via = k.via
	}
	c.mu.Unlock()
	if via != "" {
		c.pass(via, &passedOn{toClient: true, client: name, frame: f})
	}
}

// offer queues a frame, or loses it if the client is slow. The session sends it again.
func (s *clientStream) offer(f []byte) {
	select {
	case s.frames <- f:
	default:
	}
}

// ownerOf returns the certificate of a client.
func (c *clients) ownerOf(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.known[name]; k != nil {
		return k.owner
	}
	return ""
}

// drop ends the connection of a client that has sent something wrong.
func (c *clients) drop(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.known[name]; k != nil && k.stream != nil {
		k.stream.end()
	}
}

// forgotten is called when the core forgets a client. It returns false if the client is
// connected again.
func (c *clients) forgotten(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.known[name]
	if k != nil && k.stream != nil {
		return false
	}
	if k != nil {
		delete(c.known, name)
		if c.owners[k.owner]--; c.owners[k.owner] == 0 {
			delete(c.owners, k.owner)
		}
	}
	return true
}

// connected is the number of clients with a stream to this node.
func (c *clients) connected() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.known {
		if k.stream != nil {
			n++
		}
	}
	return n
}

// isClient reports whether a peer is a client.
func isClient(name string) bool { return strings.HasPrefix(name, clientPrefix) }
