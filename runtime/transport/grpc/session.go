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

// session receives from a peer: on one stream, and for a moment also on its successor.
// The transport's lock protects its fields, except receiving and newest.
type session struct {
	receiving    sync.Mutex // held while a frame is handled: one at a time, for all streams
	newest       uint64     // the newest stream that a frame has come on; protected by receiving
	streamsTotal uint64     // streams so far
	process      *process   // that is connected; nil: none
	advertised   string     // the address to dial the peer, as announced; "": not announced
}

// carry serves a stream of a peer. It is called as the handler of a call, which ends with the
// certificates.
func (t *Transport) carry(stream gogrpc.ServerStream) error {
	address := addressOf(stream.Context())
	other, err := t.authenticate(stream)
	if err != nil {
		t.refuseCaller(stream.Context(), "hello", other.node, err)
		return status.Error(codes.PermissionDenied, err.Error())
	}
	in, err := t.admit(&other, address)
	if err != nil {
		t.refuseCaller(stream.Context(), "enter", other.node, err)
		return refusalStatus(err)
	}
	if in == nil {
		return status.Error(codes.Unavailable, errClosed.Error())
	}
	t.connections.acquire(address)
	defer t.connections.release(address)
	if err := stream.SendHeader(t.hello(other.node).metadata()); err != nil {
		t.release(in)
		return err
	}
	received := make(chan error, 1)
	go func() { // the end of the call ends it
		received <- t.endStatus(in.peer, address, t.receive(in, stream))
		t.release(in) // not earlier: frames of the peer's next process must not be handled before the last frame of this one
	}()
	select {
	case err := <-received:
		return err
	case <-in.process.ended:
		t.refuseCaller(stream.Context(), "enter", other.node, in.process.why)
		return refusalStatus(in.process.why)
	}
}

// authenticate checks who calls, by certificate and hello.
func (t *Transport) authenticate(stream gogrpc.ServerStream) (other hello, err error) {
	caller, ok := callerOf(stream.Context())
	if t.certificates != nil && !ok {
		return other, errors.New("the connection has no TLS")
	}
	headers, _ := metadata.FromIncomingContext(stream.Context())
	if other, err = readHello(headers); err != nil {
		return other, err
	}
	if t.certificates != nil && other.node != caller.id.Node {
		return other, fmt.Errorf("%s must not use the name %.100q", caller.id, other.node)
	}
	if err := certs.CheckNode(other.node); err != nil || len(other.node) > metadataNameBytes {
		return other, fmt.Errorf("%.100q is not a name of a node", other.node)
	}
	if err := t.hello(other.node).compatible(&other); err != nil {
		return other, fmt.Errorf("%q: %w", other.node, err)
	}
	return other, nil
}

// inbound is a stream of a process.
type inbound struct {
	peer    *peer
	process *process
	number  uint64 // among the streams of the peer
}

// admit adds a stream of a peer and numbers it, or refuses it. It returns nil if the transport is
// closed.
func (t *Transport) admit(other *hello, address net.Addr) (*inbound, error) {
	sender := other.process(address)
	for {
		before, err := t.admits(sender)
		if err != nil {
			return nil, err
		}
		if in, ok, err := t.add(sender, address, before); ok {
			return in, err
		}
	}
}

// add adds a stream of a process, and ends the connections of the process before. It returns
// false if that one is not connected any more.
func (t *Transport) add(sender Process, address net.Addr, before *process) (in *inbound, ok bool, err error) {
	drop := func() {}
	defer func() { drop() }() // without the lock
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, true, nil
	}
	p := t.peers[sender.Node]
	switch {
	case p != nil && p.process != before, p == nil && before != nil:
		return nil, false, nil
	case p == nil && t.unconfigured() >= unconfiguredMax:
		return nil, true, fmt.Errorf("%q is not in the configuration, and %d other nodes that are not in it are connected", sender.Node, unconfiguredMax)
	case before != nil && before.Boot == sender.Boot && before.streams >= peerStreamsMax:
		return nil, true, fmt.Errorf("%q has %d streams already", sender.Node, before.streams)
	}
	p = t.peer(sender.Node)
	if before != nil && before.Boot != sender.Boot {
		drop = p.end(&Refusal{ErrSuperseded, fmt.Sprintf("another process has connected as %q, from %s", sender.Node, address)})
	}
	if p.process == nil {
		p.process = &process{ended: make(chan struct{})}
	}
	p.streamsTotal++
	c := p.process
	c.Connected = Connected{sender, address, time.Now()}
	c.streams++
	p.advertised = sender.Address
	if p.link != nil {
		p.link.peerSeen.notify()
	}
	t.running.Add(1) // until release
	return &inbound{p, c, p.streamsTotal}, true, nil
}

// unconfigured returns the number of connected nodes without a link. The lock must be
// held.
func (t *Transport) unconfigured() (n int) {
	for _, p := range t.peers {
		if p.link == nil {
			n++
		}
	}
	return n
}

func (t *Transport) release(in *inbound) {
	t.mu.Lock()
	if c := in.process; c.streams == 1 && in.peer.process == c {
		in.peer.process = nil
		t.forget(in.peer)
	}
	in.process.streams--
	t.mu.Unlock()
	t.running.Done()
}

// endStatus returns the status that ends a stream.
func (t *Transport) endStatus(p *peer, address net.Addr, err error) error {
	switch {
	case err == io.EOF:
		return nil
	case err == errClosed, err == errReplaced:
		return status.Error(codes.Unavailable, err.Error())
	case status.Code(err) == codes.Canceled || status.Code(err) == codes.Unavailable:
		return err // the connection is lost, or the peer has ended it
	}
	p.count.Refused.Add(1)
	if st, ok := status.FromError(err); ok {
		err = errors.New(st.Message())
	}
	t.logLimit.log(slog.LevelError, "frame "+p.name, "ended the stream of a peer: it violates the protocol",
		"peer", p.name, "address", address.String(), "error", err)
	return status.Errorf(codes.InvalidArgument, "an invalid frame: %.500v", err)
}

// receive calls the handlers for the frames of a stream.
func (t *Transport) receive(from *inbound, stream gogrpc.ServerStream) error {
	in := &streamReceiver{transport: t, peer: from.peer, number: from.number}
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

// streamReceiver is the receiver of a stream.
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
	if in.number < in.peer.newest { // the peer uses a newer stream: this frame is too late
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
	in.transport.logLimit.log(slog.LevelError, "assembly "+in.peer.name, "dropped a large message: incomplete messages use up ReassemblyBytesMax",
		"peer", in.peer.name, "limit", in.transport.config.ReassemblyBytesMax)
}
