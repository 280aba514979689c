package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	gogrpc "google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/transport"
	"github.com/topogen/topogen/runtime/transport/grpc"
)

// clientTransport connects a client to the nodes: one stream to each of them. It is a
// transport.Transport for the frames of sessions. Frames for a node that the client cannot
// reach go through another node. The session is with the node itself, whatever way its
// frames take, so a message is handled once also if the way changes.
type clientTransport struct {
	node *Node
	name string
	tls  *grpc.TLS
	dial grpc.Dialer

	mu      sync.Mutex
	streams map[string]*outStream // by node
	closed  bool
	stale   chan struct{} // has a token if the address table must be asked for soon
	stopped chan struct{} // closed with closed
	running sync.WaitGroup
}

// outStream is the stream to a node.
type outStream struct {
	name, address string
	frames        chan []byte
	stop          context.CancelFunc

	// Guarded by the lock of the transport.
	conn   *gogrpc.ClientConn // nil: the node cannot be reached
	noRoom string             // why the node has no room for this client; "": it has, or it cannot be reached
	heard  bool               // another node has passed on a frame of this one, since conn was lost
}

// follow connects to the nodes of a list, and ends the streams to all other nodes.
func (t *clientTransport) follow(nodes []*table.Node) {
	var gone []string
	defer func() {
		t.node.post(func(h *happened) {
			for _, name := range gone {
				h.alive = append(h.alive, alive{node: name})
			}
		})
	}()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	current := map[string]bool{}
	for _, n := range nodes {
		current[n.Name] = true
		old := t.streams[n.Name]
		if n.Address == "" || old != nil && old.address == n.Address {
			continue
		}
		if old != nil {
			old.stop()
		}
		ctx, stop := context.WithCancel(context.Background())
		s := &outStream{name: n.Name, address: n.Address, frames: make(chan []byte, clientFrames), stop: stop}
		t.streams[n.Name] = s
		t.running.Go(func() { t.run(ctx, s) })
	}
	for name, s := range t.streams {
		if !current[name] {
			s.stop()
			delete(t.streams, name)
			gone = append(gone, name)
		}
	}
}

// isStale asks a node for the address table soon.
func (t *clientTransport) isStale() {
	select {
	case t.stale <- struct{}{}:
	default:
	}
}

// run keeps a stream to a node. The kernel closes the connections of a process that ends,
// so the client notices at once that a node on the same host has died, and usually also
// that one on another host has.
func (t *clientTransport) run(ctx context.Context, s *outStream) {
	defer s.stop()
	refused := "" // the reason that was logged
	for pause := dialPauseMin; ctx.Err() == nil; pause = min(2*pause, dialPauseMax) {
		began := time.Now()
		err := t.connect(ctx, s)
		if ctx.Err() != nil {
			return
		}
		t.node.log.Debug("topogen: the stream to a node has ended", slog.String("node", s.name), slog.Any("error", refusal(orEnded(err))))
		text, noRoom := refusal(err).Error(), errors.Is(err, errNoRoom)
		if noRoom {
			t.setNoRoom(s, text)
		} else {
			t.setNoRoom(s, "")
		}
		if (noRoom || isFinal(err)) && text != refused {
			refused = text
			t.node.log.Error("topogen: a node refuses this client", slog.String("node", s.name), slog.String("reason", text))
		}
		if time.Since(began) > dialPauseMax {
			pause = dialPauseMin
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// connect opens a stream and runs it until it ends.
func (t *clientTransport) connect(ctx context.Context, s *outStream) error {
	conn, err := grpc.DialThrough(s.address, t.tls, t.dial)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(ctx, clientKey, t.name))
	defer cancel()
	stream, err := conn.NewStream(ctx, &gogrpc.StreamDesc{ServerStreams: true, ClientStreams: true}, connectMethod)
	if err != nil {
		return err
	}
	switch header, err := stream.Header(); {
	case err != nil:
		return err
	case header == nil: // the node has refused the client
		err := stream.RecvMsg(new(wrapperspb.BytesValue))
		if status.Code(err) == codes.ResourceExhausted {
			return fmt.Errorf("%w: %w", errNoRoom, refusal(err))
		}
		return err
	}
	t.setConn(s, conn)
	defer t.setConn(s, nil)
	ended := make(chan error, 1)
	t.running.Go(func() { ended <- t.receiveAll(stream, s) })
	for {
		select {
		case f := <-s.frames:
			if err := stream.SendMsg(wrapperspb.Bytes(f)); err != nil && !errors.Is(err, io.EOF) {
				return err
			}
		case err := <-ended:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// receiveAll passes on the frames of a stream until it ends.
func (t *clientTransport) receiveAll(stream gogrpc.ClientStream, s *outStream) error {
	for {
		m := new(wrapperspb.BytesValue)
		if err := stream.RecvMsg(m); err != nil {
			return err
		}
		from, f, ok := cutEnvelope(m.GetValue())
		if !ok || len(f) == 0 {
			return errMalformed
		}
		if from == "" {
			t.node.receive(s.name, [][]byte{f})
		} else if t.relayed(from) {
			t.node.receive(from, [][]byte{f})
		}
	}
}

// setConn records that a node can be reached, or, with nil, that it cannot. While another
// node can be reached, frames go through that one.
func (t *clientTransport) setConn(s *outStream, conn *gogrpc.ClientConn) {
	t.mu.Lock()
	if t.streams[s.name] != s {
		t.mu.Unlock() // the node has another address now
		return
	}
	s.conn, s.heard, s.noRoom = conn, false, ""
	if t.relay() == nil {
		for _, other := range t.streams {
			other.heard = false
		}
	}
	t.mu.Unlock()
	t.post()
	if conn == nil {
		t.isStale() // the node may have left
	}
}

// setNoRoom records why a node has no room for this client. "" means that it may have room.
func (t *clientTransport) setNoRoom(s *outStream, why string) {
	t.mu.Lock()
	changed := t.streams[s.name] == s && s.noRoom != why
	if changed {
		s.noRoom = why
	}
	t.mu.Unlock()
	if changed {
		t.post()
	}
}

// post tells the core which nodes it may send to.
func (t *clientTransport) post() {
	t.node.post(func(h *happened) {
		t.mu.Lock()
		defer t.mu.Unlock()
		connected := slices.ContainsFunc(slices.Collect(maps.Values(t.streams)), func(s *outStream) bool { return s.conn != nil })
		for _, name := range slices.Sorted(maps.Keys(t.streams)) {
			noRoom := t.streams[name].noRoom
			if t.streams[name].conn == nil { // the session must know that frames may be lost
				h.alive = append(h.alive, alive{node: name, noRoom: noRoom})
			}
			if connected && noRoom == "" { // the node would also refuse frames that another node passes on
				h.alive = append(h.alive, alive{node: name, alive: true})
			}
		}
	})
}

// relayed records that another node has passed on a frame of a node.
func (t *clientTransport) relayed(from string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.streams[from]
	if s != nil {
		s.heard = true
	}
	return s != nil
}

// reaches reports whether frames of a node arrive, directly or through another node.
func (t *clientTransport) reaches(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.streams[name]
	return s != nil && (s.conn != nil || s.heard)
}

// relay is the first node by name that can be reached, or nil. The caller holds the lock.
func (t *clientTransport) relay() *outStream {
	for _, name := range slices.Sorted(maps.Keys(t.streams)) {
		if s := t.streams[name]; s.conn != nil {
			return s
		}
	}
	return nil
}

// anyConn is a connection to a node, or nil.
func (t *clientTransport) anyConn() *gogrpc.ClientConn {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.relay(); s != nil {
		return s.conn
	}
	return nil
}

// keepRelays tells the nodes that this client reaches only through another node that it is
// there.
func (t *clientTransport) keepRelays() {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.relay()
	if r == nil {
		return
	}
	for name, s := range t.streams {
		if s.conn == nil && s.heard {
			r.offer(appendEnvelope(nil, name, nil))
		}
	}
}

// offer queues a frame, or loses it if the node is slow. The session sends it again.
func (s *outStream) offer(f []byte) {
	select {
	case s.frames <- f:
	default:
	}
}

// Send implements transport.Transport.
func (t *clientTransport) Send(to string, messages ...transport.Message) {
	t.mu.Lock()
	s := t.streams[to]
	if s == nil {
		t.mu.Unlock()
		return
	}
	if s.conn != nil {
		to = ""
	} else {
		s = t.relay()
	}
	t.mu.Unlock()
	if s == nil {
		return
	}
	for _, m := range messages {
		s.offer(appendEnvelope(nil, to, m.Payload))
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
	if !t.closed {
		t.closed = true
		close(t.stopped)
	}
	for _, s := range t.streams {
		s.stop()
	}
	t.mu.Unlock()
	t.running.Wait()
	t.node.client.refreshed.Wait()
	return nil
}

// errStreamEnded says that the stream of a client has ended without an error.
var errStreamEnded = errors.New("the node has ended the stream")

// errNoRoom says that a node has as many clients as it may have.
var errNoRoom = errors.New("it has too many clients")

// orEnded returns a better error for the end of a stream.
func orEnded(err error) error {
	if errors.Is(err, io.EOF) {
		return errStreamEnded
	}
	return err
}
