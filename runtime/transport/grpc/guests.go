package grpc

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/topogen/topogen/runtime/transport/certs"
)

// guests is the listener of the server for operators and clients. The server for nodes
// makes the handshakes of all connections, and passes on those of operators and clients.
// They have a server of their own, because the limits of messages, windows and streams are
// those of a server.
type guests struct {
	address  net.Addr
	accepted chan *guest
	closed   chan struct{}
	close    func()
}

func newGuests(address net.Addr) *guests {
	g := &guests{address: address, accepted: make(chan *guest), closed: make(chan struct{})}
	g.close = sync.OnceFunc(func() { close(g.closed) })
	return g
}

func (g *guests) Addr() net.Addr { return g.address }

func (g *guests) Close() error {
	g.close()
	return nil
}

func (g *guests) Accept() (net.Conn, error) {
	select {
	case c := <-g.accepted:
		return c, nil
	case <-g.closed:
		return nil, net.ErrClosed
	}
}

// pass passes on a connection, or closes it if the node has stopped.
func (g *guests) pass(conn net.Conn, who credentials.AuthInfo) error {
	c := &guest{Conn: conn, who: who}
	c.limit = time.AfterFunc(time.Hour, func() { _ = conn.Close() })
	c.limit.Stop()
	select {
	case g.accepted <- c:
		return credentials.ErrConnDispatched
	case <-g.closed:
		_ = conn.Close()
		return net.ErrClosed
	}
}

// guest is a connection after its handshake.
type guest struct {
	net.Conn
	who   credentials.AuthInfo
	limit *time.Timer // closes the connection
}

// SetDeadline closes the connection at a time. It does not set the deadline of the
// connection itself, which the server that has passed it on sets too.
func (g *guest) SetDeadline(at time.Time) error {
	g.limit.Stop()
	if !at.IsZero() {
		g.limit.Reset(time.Until(at))
	}
	return nil
}

// guestCredentials are the credentials of the server for operators and clients, whose
// connections have made their handshake.
type guestCredentials struct {
	credentials.TransportCredentials
}

func (guestCredentials) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	g := conn.(*guest)
	return g.Conn, g.who, nil
}

func (c guestCredentials) Clone() credentials.TransportCredentials { return c }

// listenerTLS are the credentials of the server for nodes.
type listenerTLS struct {
	*mutualTLS
	transport *Transport
}

func (l *listenerTLS) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, who, err := l.mutualTLS.ServerHandshake(raw)
	if err != nil {
		return nil, nil, err
	}
	id := who.(identity).id
	if n, ok := l.transport.connections.identify(raw.RemoteAddr(), id); !ok {
		err := &refusedID{id, "connections", fmt.Errorf("%s has %d connections already", id, n)}
		l.refused(raw, err)
		_ = conn.Close()
		return nil, nil, err
	}
	if id.Node == "" {
		return nil, nil, l.transport.guests.pass(conn, who)
	}
	return conn, who, nil
}

func (l *listenerTLS) Clone() credentials.TransportCredentials { return l }

// refusedID is the reason why a process with a valid certificate is refused.
type refusedID struct {
	id   certs.ID
	kind string // of the reason, for the log
	error
}

// belongs returns an error if another certificate is not for the topology of this node.
func (t *Transport) belongs(id certs.ID) error {
	switch {
	case id.TrustDomain != t.config.TrustDomain:
		return &refusedID{id, "trust domain", fmt.Errorf("%s is not in the trust domain of this node, %q", id, t.config.TrustDomain)}
	case id.Topology != t.config.Topology:
		return &refusedID{id, "topology", fmt.Errorf("%s is not in the topology of this node, %q", id, t.config.Topology)}
	}
	return nil
}

// asRefusedID returns the process with a valid certificate that an error refuses, or nil.
func asRefusedID(err error) *refusedID {
	r, _ := errors.AsType[*refusedID](err)
	return r
}
