package cluster

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	gogrpc "google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/transport"
	"github.com/topogen/topogen/runtime/transport/grpc"
)

// Environment variables of clients.
const (
	VariableClientWait  = "TOPOGEN_CLIENT_WAIT"  // how long NewClient waits for the first node; a duration
	VariableClientRetry = "TOPOGEN_CLIENT_RETRY" // how long messages wait for a node that cannot be reached; a duration
)

const (
	clientWait   = 30 * time.Second // as the original waits for its server
	clientRetry  = 60 * time.Second // as the original waits for a restart
	dialPauseMin = 50 * time.Millisecond
	dialPauseMax = time.Second
)

// ClientConfig configures a client, a process outside the cluster that sends messages to
// it. Zero fields have the values of the topology file and of the environment.
type ClientConfig struct {
	Addresses []string // host:port of some nodes; default: the first members

	TLSCert, TLSKey, TLSCA string // files; the certificate is that of a client or an operator

	Wait  time.Duration // how long NewClient waits for the first node; 0: 30s, TOPOGEN_CLIENT_WAIT
	Retry time.Duration // how long messages wait for a node that cannot be reached; 0: 60s, TOPOGEN_CLIENT_RETRY

	Logger *slog.Logger
}

// OpenClient makes this process a client of a cluster. Generated code calls it.
func OpenClient(c Config, client ClientConfig, o piper.NodeSettings) (*Node, error) {
	name := rand.Text()
	s := settings{Config: c, node: clientPrefix + name, log: cmp.Or(client.Logger, o.Logger), drainTimeout: o.DrainTimeout}
	s.TLSCert = cmp.Or(client.TLSCert, os.Getenv(VariableCert), s.TLSCert)
	s.TLSKey = cmp.Or(client.TLSKey, os.Getenv(VariableKey), s.TLSKey)
	s.TLSCA = cmp.Or(client.TLSCA, os.Getenv(VariableCA), s.TLSCA)
	wait, err := durationOf(client.Wait, VariableClientWait, clientWait)
	if err != nil {
		return nil, err
	}
	if s.Retry.Timeout, err = durationOf(client.Retry, VariableClientRetry, clientRetry); err != nil {
		return nil, err
	}
	addresses := client.Addresses
	if text := os.Getenv(VariableNodes); len(addresses) == 0 && text != "" {
		if s.Nodes, err = readNodes(text); err != nil {
			return nil, err
		}
	}
	if len(addresses) == 0 {
		addresses = slices.Sorted(maps.Values(s.Nodes))
	}
	n := newNode(s)
	t := &clientTransport{node: n, name: name, streams: map[string]*outStream{}}
	if s.TLSCert != "" {
		t.tls = &grpc.TLS{Cert: s.TLSCert, Key: s.TLSKey, CA: s.TLSCA}
	}
	n.client = &clientPart{transport: t, addresses: addresses, wait: wait}
	n.transport, n.close = t, t.Close
	return n, nil
}

// durationOf returns a setting, the value of an environment variable, or a default.
func durationOf(set time.Duration, variable string, byDefault time.Duration) (time.Duration, error) {
	if text := os.Getenv(variable); set == 0 && text != "" {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return 0, fmt.Errorf("%s must be a duration such as 30s, got %q", variable, text)
		}
		return d, nil
	}
	return cmp.Or(set, byDefault), nil
}

// clientPart is the part of a Node that is a client.
type clientPart struct {
	transport *clientTransport
	addresses []string
	wait      time.Duration
}

// beginClient finds the nodes of the cluster. None of the instances is here.
func (n *Node) beginClient(ctx context.Context, p *piper.Pool) error {
	replica, err := n.client.find(ctx, n.settings.Plan)
	if err != nil {
		return err
	}
	where, err := newLookup(&n.settings, replica)
	if err != nil {
		return err
	}
	if err := p.Place(func(int, int) bool { return false }); err != nil {
		return err
	}
	n.core.client = true
	n.core.begin(p, where)
	n.client.transport.follow(where.nodes())
	n.start()
	return nil
}

// find asks the addresses, one after the other, until a node answers.
func (c *clientPart) find(ctx context.Context, plan string) (*table.Replica, error) {
	ctx, cancel := context.WithTimeout(ctx, c.wait)
	defer cancel()
	last := errors.New("there is no address")
	for pause := dialPauseMin; ; pause = min(2*pause, dialPauseMax) {
		for _, address := range c.addresses {
			conn, err := grpc.Dial(address, c.transport.tls)
			if err != nil {
				return nil, err
			}
			replica, err := fetchPlaces(ctx, conn, plan)
			conn.Close()
			if err == nil {
				return replica, nil
			}
			last = fmt.Errorf("%s: %w", address, err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, fmt.Errorf("no node of the cluster has answered within %v: %w", c.wait, last)
		}
	}
}

// clientTransport connects a client to the nodes: one stream to each of them. It is a
// transport.Transport for the frames of sessions.
type clientTransport struct {
	node *Node
	name string
	tls  *grpc.TLS

	mu      sync.Mutex
	streams map[string]*outStream // by node
	closed  bool
	running sync.WaitGroup
}

// outStream is the stream to a node.
type outStream struct {
	frames chan []byte
	stop   context.CancelFunc
}

// follow connects to nodes.
func (t *clientTransport) follow(nodes []*table.Node) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range nodes {
		if t.streams[n.Name] != nil || n.Address == "" || t.closed {
			continue
		}
		ctx, stop := context.WithCancel(context.Background())
		s := &outStream{frames: make(chan []byte, clientFrames), stop: stop}
		t.streams[n.Name] = s
		t.running.Go(func() { t.run(ctx, n.Name, n.Address, s) })
	}
}

// run keeps a stream to a node. A process on the same host that ends closes its
// connections at once, so the client notices it at once.
func (t *clientTransport) run(ctx context.Context, name, address string, s *outStream) {
	for pause := dialPauseMin; ctx.Err() == nil; pause = min(2*pause, dialPauseMax) {
		began := time.Now()
		err := t.connect(ctx, name, address, s)
		t.node.post(func(h *happened) { h.alive = append(h.alive, alive{node: name}) })
		if ctx.Err() != nil {
			return
		}
		t.node.log.Debug("topogen: the stream to a node has ended", slog.String("node", name), slog.Any("error", orEnded(err)))
		if time.Since(began) > dialPauseMax {
			pause = dialPauseMin
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

func (t *clientTransport) connect(ctx context.Context, name, address string, s *outStream) error {
	conn, err := grpc.Dial(address, t.tls)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(ctx, clientKey, t.name))
	defer cancel()
	stream, err := conn.NewStream(ctx, &gogrpc.StreamDesc{ServerStreams: true, ClientStreams: true}, connectMethod)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() {
		for {
			m := new(wrapperspb.BytesValue)
			if err := stream.RecvMsg(m); err != nil {
				ended <- err
				return
			}
			t.node.receive(name, [][]byte{m.GetValue()})
		}
	}()
	t.node.post(func(h *happened) { h.alive = append(h.alive, alive{node: name, alive: true}) })
	for {
		select {
		case f := <-s.frames:
			if err := stream.SendMsg(wrapperspb.Bytes(f)); err != nil {
				return err
			}
		case err := <-ended:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Send implements transport.Transport. Frames for a node that is slow are lost; the
// session sends them again.
func (t *clientTransport) Send(to string, messages ...transport.Message) {
	t.mu.Lock()
	s := t.streams[to]
	t.mu.Unlock()
	if s == nil {
		return
	}
	for _, m := range messages {
		select {
		case s.frames <- m.Payload:
		default:
		}
	}
}

// Handle, SetPeer, PeerAddress, RemovePeer and Stats implement transport.Transport.
func (t *clientTransport) Handle(uint64, func(string, [][]byte)) {}
func (t *clientTransport) SetPeer(string, string)                {}
func (t *clientTransport) PeerAddress(string) (string, bool)     { return "", false }
func (t *clientTransport) RemovePeer(string)                     {}
func (t *clientTransport) Stats() transport.Stats                { return transport.Stats{} }

// Close ends all streams.
func (t *clientTransport) Close() error {
	t.mu.Lock()
	t.closed = true
	for _, s := range t.streams {
		s.stop()
	}
	t.mu.Unlock()
	t.running.Wait()
	return nil
}
