package grpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	gogrpc "google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	gogrpcpeer "google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/topogen/topogen/runtime/transport/certs"
)

// errRefused is why two ends that have reached each other do not talk.
var errRefused = errors.New("refused")

// stream is a connection to a peer with the stream that it is for.
type stream struct {
	connection *gogrpc.ClientConn
	stream     gogrpc.ClientStream
	cancel     context.CancelFunc
	other      hello
	ended      chan struct{}         // the peer has ended it, or it is broken
	err        error                 // why; nil: all was taken. After ended
	tlsError   atomic.Pointer[error] // of TLS, where it has failed
	expires    time.Time             // zero: never
	expired    <-chan time.Time
	expiry     *time.Timer
	sendTimer  *time.Timer // ends the stream if a frame is not taken
}

// dial connects to the peer and greets it.
func (l *link) dial(ctx context.Context) (*stream, error) {
	t := l.transport
	s := &stream{ended: make(chan struct{})}
	connection, err := gogrpc.NewClient("passthrough:///"+l.address,
		gogrpc.WithTransportCredentials(s.credentials(t.certificates)),
		gogrpc.WithContextDialer(t.config.dialer().dial),
		gogrpc.WithNoProxy(),
		gogrpc.WithDisableServiceConfig(),
		gogrpc.WithDisableRetry(), // nothing is kept to be sent again
		gogrpc.WithStaticStreamWindowSize(64<<10),
		gogrpc.WithStaticConnWindowSize(64<<10), // nothing but headers comes
		gogrpc.WithWriteBufferSize(transferBuffer),
		gogrpc.WithMaxHeaderListSize(headerBytesMax),
		gogrpc.WithKeepaliveParams(keepalive.ClientParameters{Time: clientPing, Timeout: pingTimeout}),
	)
	if err != nil {
		return nil, err
	}
	s.connection = connection
	ctx, s.cancel = context.WithCancel(ctx)
	limit := time.AfterFunc(handshakeTimeout, s.cancel)
	err = s.handshake(ctx, l)
	if !limit.Stop() && err != nil {
		err = fmt.Errorf("no answer within %v: %w", handshakeTimeout, err)
	}
	if err != nil {
		s.cancel()
		connection.Close()
		return nil, err
	}
	return s, nil
}

// greet opens the stream, and checks who answers. The peer is told who this is
// before it is checked who it is, so that both can say why they refuse.
func (s *stream) handshake(ctx context.Context, l *link) (err error) {
	t := l.transport
	own := t.hello(l.peer.name)
	var reached gogrpcpeer.Peer
	s.stream, err = s.connection.NewStream(metadata.NewOutgoingContext(ctx, own.metadata()), &service.Streams[0], methodCarry,
		gogrpc.CallContentSubtype(codecName), gogrpc.MaxCallRecvMsgSize(helloBytesMax), gogrpc.Peer(&reached))
	if err != nil {
		return s.dialError(err)
	}
	headers, err := s.stream.Header()
	if err == nil && len(headers.Get(helloKey)) == 0 {
		err = s.stream.RecvMsg(new([]byte)) // the status says why
	}
	if p, ok := gogrpcpeer.FromContext(s.stream.Context()); ok {
		reached = *p
	}
	if who, ok := reached.AuthInfo.(identity); ok {
		want := certs.ID{TrustDomain: t.config.TrustDomain, Topology: t.config.Topology, Node: l.peer.name}
		if who.id != want {
			return fmt.Errorf("%w: reached %s, want %s", errRefused, who.id, want)
		}
		s.expires = who.expires
	} else if t.certificates != nil && err == nil {
		return fmt.Errorf("%w: a connection without TLS", errRefused)
	}
	if err != nil {
		return s.dialError(err)
	}
	if s.other, err = readHello(headers); err == nil {
		err = own.compatible(&s.other)
	}
	if err == nil && s.other.node != l.peer.name {
		err = fmt.Errorf("reached %.100q", s.other.node)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errRefused, err)
	}
	if !s.expires.IsZero() {
		s.expiry = time.NewTimer(time.Until(s.expires))
		s.expired = s.expiry.C
	}
	s.sendTimer = time.AfterFunc(time.Hour, s.cancel)
	s.sendTimer.Stop()
	go s.watch()
	return nil
}

// watch waits for the end of the stream.
func (s *stream) watch() {
	defer close(s.ended)
	var b []byte
	err := s.stream.RecvMsg(&b)
	switch {
	case err == nil:
		s.err = fmt.Errorf("%w: the peer sends along a stream that is not its own", errRefused)
		s.cancel()
	case err != io.EOF:
		s.err = readable(err)
	}
}

// broken is why the stream has ended.
func (s *stream) cause() error {
	<-s.ended
	if s.err == nil {
		return errors.New("the peer has ended the stream")
	}
	return s.err
}

// send sends a frame; it waits as long as the peer takes none, up to frameTimeout.
func (s *stream) send(frame mem.BufferSlice) error {
	s.sendTimer.Reset(frameTimeout)
	err := s.stream.SendMsg(frame)
	if !s.sendTimer.Stop() {
		return fmt.Errorf("the peer has taken nothing for %v", frameTimeout)
	}
	if err == io.EOF { // the reason is with whoever receives
		return s.cause()
	}
	return err
}

// finish ends the stream when the peer has taken all.
func (s *stream) finish() {
	if s.stream.CloseSend() != nil {
		return
	}
	limit := time.NewTimer(finishTimeout)
	defer limit.Stop()
	select {
	case <-s.ended:
	case <-limit.C:
	}
}

// close ends it at once.
func (s *stream) close() {
	s.cancel()
	s.connection.Close()
	<-s.ended
	s.sendTimer.Stop()
	if s.expiry != nil {
		s.expiry.Stop()
	}
}

// readable is an error of gRPC in words for people. Those that a listener gives on
// purpose are refusals.
func readable(err error) error {
	st, ok := status.FromError(err)
	if !ok {
		return err
	}
	switch st.Code() {
	case codes.PermissionDenied, codes.InvalidArgument, codes.AlreadyExists, codes.Unauthenticated, codes.Unimplemented, codes.ResourceExhausted:
		return fmt.Errorf("%w: %.500s", errRefused, st.Message())
	}
	return fmt.Errorf("%.500s", st.Message())
}

// why is a failure to connect. What TLS has to say is lost on its way through gRPC.
func (s *stream) dialError(err error) error {
	if failure := s.tlsError.Load(); failure != nil {
		return fmt.Errorf("%w: TLS: %w", errRefused, *failure)
	}
	return readable(err)
}

func (s *stream) credentials(c *certificates) credentials.TransportCredentials {
	if c == nil {
		return insecure.NewCredentials()
	}
	return newMutualTLS(c, func(_ net.Conn, err error) { s.tlsError.Store(&err) })
}

// dialer connects; without TLS to loopback addresses alone.
type dialer struct{ net.Dialer }

func (c *Config) dialer() *dialer {
	d := &dialer{net.Dialer{KeepAlive: tcpKeepAlive}}
	loopbackOnly := c.loopbackOnly()
	d.Control = func(_, address string, conn syscall.RawConn) error {
		_ = limitUnsent(conn) // without it urgent messages come later, and no less
		host, _, err := net.SplitHostPort(address)
		if loopbackOnly && (err != nil || !net.ParseIP(host).IsLoopback()) {
			return fmt.Errorf("%w: %s is not on this machine: set TLS, or Insecure", ErrInsecure, address)
		}
		return nil
	}
	return d
}

func (d *dialer) dial(ctx context.Context, address string) (net.Conn, error) {
	return d.DialContext(ctx, "tcp", address)
}
