package grpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
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

// errRefused means that two ends have reached each other, and one refuses the other.
var errRefused = errors.New("refused")

// stream is a connection to a peer with its only stream.
type stream struct {
	connection *gogrpc.ClientConn
	stream     gogrpc.ClientStream
	cancel     context.CancelFunc
	other      hello
	process    Process               // that has sent it
	ended      chan struct{}         // closed when the peer has ended the stream, or it is broken
	err        error                 // the reason, valid after ended; nil: the peer has received everything
	tlsError   atomic.Pointer[error] // of the TLS handshake, if it failed
	expires    time.Time             // zero: never
	expired    <-chan time.Time
	expiry     *time.Timer
	sendTimer  *time.Timer // ends the stream if a frame is not sent in time
}

// dial connects to the peer and exchanges hellos, when its turn has come.
func (l *link) dial(ctx context.Context) (s *stream, err error) {
	dialing := &l.transport.dialing
	if err := dialing.take(ctx); err != nil {
		return nil, err
	}
	s, result, err := l.connect(ctx)
	dialing.give(result)
	return s, err
}

func (l *link) connect(ctx context.Context) (*stream, outcome, error) {
	t := l.transport
	reached, dialer := new(atomic.Bool), t.config.dialer()
	s := &stream{ended: make(chan struct{})}
	connection, err := gogrpc.NewClient("passthrough:///"+l.address,
		gogrpc.WithTransportCredentials(s.credentials(t.certificates, l.peer.name)),
		gogrpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			conn, err := dialer.dial(ctx, address)
			reached.Store(err == nil)
			return conn, err
		}),
		gogrpc.WithNoProxy(),
		gogrpc.WithDisableServiceConfig(),
		gogrpc.WithDisableRetry(), // so gRPC does not buffer messages for retries
		gogrpc.WithStaticStreamWindowSize(64<<10),
		gogrpc.WithStaticConnWindowSize(64<<10), // only headers are received
		gogrpc.WithWriteBufferSize(transferBuffer),
		gogrpc.WithMaxHeaderListSize(headerBytesMax),
		gogrpc.WithKeepaliveParams(keepalive.ClientParameters{Time: clientPing, Timeout: pingTimeout}),
	)
	if err != nil {
		return nil, attemptFailed, err
	}
	s.connection = connection
	ctx, s.cancel = context.WithCancel(ctx)
	limit := time.AfterFunc(handshakeTimeout, s.cancel)
	err = s.handshake(ctx, l)
	result := attemptSucceeded
	if err != nil {
		result = attemptFailed
		if !limit.Stop() {
			err = fmt.Errorf("no answer within %v: %w", handshakeTimeout, err)
			if reached.Load() {
				result = attemptTimedOut
			}
		}
		s.cancel()
		connection.Close()
		return nil, result, err
	}
	limit.Stop()
	return s, result, nil
}

// handshake opens the stream, and checks who answers. It sends this node's hello before
// it checks the peer, so that both ends can log why they refuse.
func (s *stream) handshake(ctx context.Context, l *link) (err error) {
	t := l.transport
	own := t.hello(l.peer.name)
	var reached gogrpcpeer.Peer
	s.stream, err = s.connection.NewStream(metadata.NewOutgoingContext(ctx, own.metadata()), &service.Streams[0], methodCarry,
		gogrpc.CallContentSubtype(codecName), gogrpc.MaxCallRecvMsgSize(helloBytesMax), gogrpc.Peer(&reached))
	if err != nil && t.certificates == nil && strings.Contains(err.Error(), "error reading server preface") {
		return fmt.Errorf("the peer has ended the connection before its first answer, and may require TLS, which this node does not use: %w", readable(err))
	}
	if err != nil {
		return s.dialError(err)
	}
	headers, err := s.stream.Header()
	if err == nil && len(headers.Get(helloKey)) == 0 {
		err = s.stream.RecvMsg(new([]byte)) // the status has the reason
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
		return fmt.Errorf("%w: the connection has no TLS", errRefused)
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
	if err == nil {
		s.process = s.other.process(reached.Addr)
		if _, refused := t.admits(s.process); refused != nil {
			err = wrongProcess(refused)
		}
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
		s.err = fmt.Errorf("%w: the peer sent data on a stream of this node", errRefused)
		s.cancel()
	case err != io.EOF:
		s.err = readable(err)
	}
}

// cause returns why the stream has ended.
func (s *stream) cause() error {
	<-s.ended
	if s.err == nil {
		return errors.New("the peer has ended the stream")
	}
	return s.err
}

// send sends a frame. It waits up to frameTimeout while the peer accepts none.
func (s *stream) send(frame mem.BufferSlice) error {
	s.sendTimer.Reset(frameTimeout)
	err := s.stream.SendMsg(frame)
	if !s.sendTimer.Stop() {
		return fmt.Errorf("the peer has accepted nothing for %v", frameTimeout)
	}
	if err == io.EOF { // watch gets the reason
		return s.cause()
	}
	return err
}

// finish ends the stream after the peer has received everything.
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

// close ends the stream at once.
func (s *stream) close() {
	s.cancel()
	s.connection.Close()
	<-s.ended
	s.sendTimer.Stop()
	if s.expiry != nil {
		s.expiry.Stop()
	}
}

// readable returns an error of gRPC without its codes. Errors that a listener returns
// on purpose match errRefused.
func readable(err error) error {
	st, ok := status.FromError(err)
	if !ok {
		return err
	}
	switch st.Code() {
	case codes.PermissionDenied, codes.InvalidArgument, codes.AlreadyExists, codes.Aborted, codes.Unauthenticated, codes.Unimplemented, codes.ResourceExhausted:
		return asRefusal(st.Code(), fmt.Sprintf("%.500s", Readable(st.Message())))
	}
	return fmt.Errorf("%.500s", Readable(st.Message()))
}

// dialError returns the reason why connecting failed. gRPC hides the error of TLS.
func (s *stream) dialError(err error) error {
	failure := s.tlsError.Load()
	switch {
	case failure == nil:
		return readable(err)
	case isBroken(*failure):
		return fmt.Errorf("TLS: %w", *failure)
	}
	return fmt.Errorf("%w: TLS: %w", errRefused, *failure)
}

// isBroken reports whether a handshake failed because the connection has ended. An end that
// refuses a certificate says so with an alert; a process that ends says nothing.
func isBroken(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

func (s *stream) credentials(c *certificates, peer string) credentials.TransportCredentials {
	if c == nil {
		return insecure.NewCredentials()
	}
	accept := func(own, other certs.ID) error {
		if other.Topology != own.Topology || other.TrustDomain != own.TrustDomain {
			return fmt.Errorf("reached %s, want %s", other, certs.ID{TrustDomain: own.TrustDomain, Topology: own.Topology, Node: peer})
		}
		return nil
	}
	return newMutualTLS(c, accept, func(_ net.Conn, err error) { s.tlsError.Store(&err) })
}

// dialer dials. Without TLS it dials only loopback addresses.
type dialer struct{ net.Dialer }

func (c *Config) dialer() *dialer {
	d := &dialer{net.Dialer{KeepAlive: tcpKeepAlive}}
	loopbackOnly := c.loopbackOnly()
	d.Control = func(_, address string, conn syscall.RawConn) error {
		_ = limitUnsent(conn) // without the limit urgent messages are only slower
		host, _, err := net.SplitHostPort(address)
		if loopbackOnly && (err != nil || !net.ParseIP(host).IsLoopback()) {
			return fmt.Errorf("%w: %s is not on this host: set TLS, or Insecure", ErrInsecure, address)
		}
		return nil
	}
	return d
}

func (d *dialer) dial(ctx context.Context, address string) (net.Conn, error) {
	return d.DialContext(ctx, "tcp", address)
}
