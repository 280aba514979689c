package grpc

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	gogrpc "google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/topogen/topogen/runtime/transport/certs"
)

// session is what comes from a peer: one stream, and for a moment its successor.
// Its fields belong to the transport's lock, all but receiving and newest.
type session struct {
	receiving    sync.Mutex // one frame at a time, whatever the stream
	newest       uint64     // the youngest stream that a frame has come along; belongs to receiving
	streamsTotal uint64     // streams so far
	streams      int        // that have not ended
	incarnation  uint64
	since        time.Time
	address      net.Addr
	advertised   string // where it can be dialled, as it says; "": it has not said
}

// carry serves a stream of a peer.
func (t *Transport) carry(stream gogrpc.ServerStream) error {
	address := addressOf(stream.Context())
	other, expires, err := t.authenticate(stream)
	if err != nil {
		t.refuse(address, fmt.Sprintf("hello %.100q", other.node), err)
		return status.Error(codes.PermissionDenied, err.Error())
	}
	p, number, err := t.admit(&other, address)
	if err != nil {
		t.refuse(address, "enter "+other.node, err)
		return status.Error(codes.AlreadyExists, err.Error())
	}
	if p == nil {
		return status.Error(codes.Unavailable, errClosed.Error())
	}
	t.connections.acquire(address)
	defer t.connections.release(address)
	if err := stream.SendHeader(t.hello(other.node).metadata()); err != nil {
		t.release(p)
		return err
	}

	var expired <-chan time.Time
	if !expires.IsZero() {
		timer := time.NewTimer(time.Until(expires))
		defer timer.Stop()
		expired = timer.C
	}
	done := make(chan error, 1)
	go func() { // ends with the stream, and that with this call
		err := t.endStatus(p, address, t.receive(p, number, stream))
		t.release(p) // not before: the next process of that name must not overtake what is being received
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-expired:
		t.logLimit.log(slog.LevelWarn, "expired "+p.name, "ended the stream of a peer: a certificate has expired", "peer", p.name, "expired", expires)
		return status.Error(codes.Unavailable, errExpired.Error())
	case <-t.ctx.Done():
		return status.Error(codes.Unavailable, errClosed.Error())
	}
}

// greeted checks who calls, by certificate and hello.
func (t *Transport) authenticate(stream gogrpc.ServerStream) (other hello, expires time.Time, err error) {
	who, ok := callerOf(stream.Context())
	if t.certificates != nil {
		switch id := who.id; {
		case !ok:
			return other, expires, errors.New("a connection without TLS")
		case id.TrustDomain != t.config.TrustDomain:
			return other, expires, fmt.Errorf("%s is of another trust domain than this node, %q", id, t.config.TrustDomain)
		case id.Topology != t.config.Topology:
			return other, expires, fmt.Errorf("%s is of another topology than this node, %q", id, t.config.Topology)
		case id.Node == "":
			return other, expires, fmt.Errorf("%s is no node", id)
		}
	}
	headers, _ := metadata.FromIncomingContext(stream.Context())
	if other, err = readHello(headers); err != nil {
		return other, expires, err
	}
	if t.certificates != nil && other.node != who.id.Node {
		return other, expires, fmt.Errorf("%s says that it is %.100q", who.id, other.node)
	}
	if err := certs.CheckNode(other.node); err != nil || len(other.node) > metadataNameBytes {
		return other, expires, fmt.Errorf("%.100q is no name of a node", other.node)
	}
	if err := t.hello(other.node).compatible(&other); err != nil {
		return other, expires, fmt.Errorf("%q: %w", other.node, err)
	}
	return other, who.expires, nil
}

// enter admits a stream of a peer, unless another process of that name is
// connected, and numbers it. It returns nil if the transport is closed.
func (t *Transport) admit(other *hello, address net.Addr) (p *peer, number uint64, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, 0, nil
	}
	p = t.peers[other.node]
	switch {
	case p == nil && t.unconfigured() >= unconfiguredMax:
		return nil, 0, fmt.Errorf("%q is not in the configuration, and %d others that are not are connected", other.node, unconfiguredMax)
	case p != nil && p.streams > 0 && p.incarnation != other.incarnation:
		return nil, 0, fmt.Errorf("another process is connected as %q, from %s, since %s: two run with one identity, or the other is about to end",
			other.node, p.address, p.since.UTC().Format(time.RFC3339))
	case p != nil && p.streams >= peerStreamsMax:
		return nil, 0, fmt.Errorf("%q has %d streams already", other.node, p.streams)
	}
	p = t.peer(other.node)
	p.streams++
	p.streamsTotal++
	p.incarnation, p.since, p.address = other.incarnation, time.Now(), address
	p.advertised = other.dialAddress(address)
	if p.link != nil {
		p.link.peerSeen.notify()
	}
	t.running.Add(1) // until leave
	return p, p.streamsTotal, nil
}

// strangers is how many nodes are connected that nothing is sent to; t is locked.
func (t *Transport) unconfigured() (n int) {
	for _, p := range t.peers {
		if p.link == nil {
			n++
		}
	}
	return n
}

func (t *Transport) release(p *peer) {
	t.mu.Lock()
	p.streams--
	t.forget(p)
	t.mu.Unlock()
	t.running.Done()
}

// ended says how a stream has ended.
func (t *Transport) endStatus(p *peer, address net.Addr, err error) error {
	switch {
	case err == io.EOF:
		return nil
	case err == errReplaced:
		return status.Error(codes.Unavailable, err.Error())
	case status.Code(err) == codes.Canceled || status.Code(err) == codes.Unavailable:
		return err // the connection is lost, or the peer has ended it
	}
	p.count.Refused.Add(1)
	if st, ok := status.FromError(err); ok {
		err = errors.New(st.Message())
	}
	t.logLimit.log(slog.LevelError, "frame "+p.name, "ended the stream of a peer: it does not keep to the protocol",
		"peer", p.name, "address", address.String(), "error", err)
	return status.Errorf(codes.InvalidArgument, "a frame that cannot be read: %.500v", err)
}

// receive gives what comes along a stream to the handlers.
func (t *Transport) receive(p *peer, number uint64, stream gogrpc.ServerStream) error {
	in := &streamReceiver{transport: t, peer: p, number: number}
	in.large = newAssemblies(&t.assembling, uint64(t.config.MessageBytesMax), in.overBudget)
	defer in.large.end()
	for {
		var b []byte
		if err := stream.RecvMsg(&b); err != nil {
			return err
		}
		if err := in.frame(b); err != nil {
			return err
		}
	}
}

// inbox is the receiver of a stream.
type streamReceiver struct {
	transport *Transport
	peer      *peer
	number    uint64 // of the stream
	large     *assemblies
}

func (in *streamReceiver) frame(b []byte) error {
	in.peer.receiving.Lock()
	defer in.peer.receiving.Unlock()
	if in.transport.ctx.Err() != nil {
		return errClosed
	}
	if in.number < in.peer.newest { // the peer sends along another since: what is left here comes too late
		return errReplaced
	}
	in.peer.newest = in.number
	return readFrame(b, in)
}

func (in *streamReceiver) messages(group uint64, payloads [][]byte) {
	in.transport.handlers.Receive(in.peer.name, group, payloads, &in.peer.count)
}

func (in *streamReceiver) chunk(c chunk) error {
	payload, err := in.large.add(c)
	if payload != nil {
		in.messages(c.group, [][]byte{payload})
	}
	return err
}

func (in *streamReceiver) overBudget() {
	in.peer.count.Refused.Add(1)
	in.transport.logLimit.log(slog.LevelError, "assembly "+in.peer.name, "dropped a large message: those that are coming already use up ReassemblyBytesMax",
		"peer", in.peer.name, "limit", in.transport.config.ReassemblyBytesMax)
}
