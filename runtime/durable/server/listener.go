package server

import (
	"container/list"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// A listener accepts a limited number of connections. Beyond the limit it closes the oldest
// connection of a stranger, on which no request had access yet, so that strangers keep no client
// out. If all connections are those of clients, it closes the new one at once, so that its client
// does not wait in vain.
type listener struct {
	net.Listener
	max     int
	refused *atomic.Uint64

	mu        sync.Mutex
	open      int
	strangers list.List // of *conn, oldest first
}

// A conn counts as open until it is closed.
type conn struct {
	net.Conn
	listener *listener
	place    *list.Element // in listener.strangers; nil: it is the connection of a client, or closed
	closed   bool
	expiry   *time.Timer // of the certificate of the client; nil: there is none, or no request yet
	known    bool        // of a client; only the goroutine of its requests uses it
	silent   atomic.Bool // no header of a request has arrived yet
	received int         // bytes while it is silent; only reads use it
	gone     chan struct{}
}

// Gone is closed when the connection is closed.
func (c *conn) Gone() <-chan struct{} { return c.gone }

func newListener(l net.Listener, max int, refused *atomic.Uint64) *listener {
	return &listener{Listener: l, max: max, refused: refused}
}

func (l *listener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &conn{Conn: accepted, listener: l, gone: make(chan struct{})}
		c.silent.Store(true)
		old := l.add(c)
		if old != nil {
			l.refused.Add(1)
			old.reset()
		}
		if old != c {
			return c, nil
		}
	}
}

// add adds a connection. It returns the connection that must be closed to make room, or nil.
func (l *listener) add(c *conn) (old *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open >= l.max {
		oldest := l.strangers.Front()
		if oldest == nil {
			c.closed = true
			return c
		}
		old = oldest.Value.(*conn)
		l.remove(old)
	}
	l.open++
	c.place = l.strangers.PushBack(c)
	return old
}

// remove ends the counting of a connection. The lock must be held.
func (l *listener) remove(c *conn) {
	if c.closed {
		return
	}
	c.closed = true
	close(c.gone)
	l.open--
	l.leave(c)
	if c.expiry != nil {
		c.expiry.Stop()
	}
}

// leave notes that a connection is not one of a stranger. The lock must be held.
func (l *listener) leave(c *conn) {
	if c.place != nil {
		l.strangers.Remove(c.place)
		c.place = nil
	}
}

// count returns the number of open connections.
func (l *listener) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open
}

// reset closes a connection that must make room.
func (c *conn) reset() {
	if t, ok := c.Conn.(*net.TCPConn); ok {
		t.SetLinger(0) // the port of the client is not needed for a refused connection
	}
	c.Conn.Close()
}

// Read limits what arrives before the first request. TLS itself keeps messages of up to 256 KiB until
// they are complete.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.silent.Load() {
		if c.received += n; c.received > silentMax {
			return 0, errSilent
		}
	}
	return n, err
}

// silentMax is what a connection may send until the header of its first request is complete: a
// handshake with a chain of five certificates takes about 12 KiB, and a header up to 20 KiB.
const silentMax = 64 << 10

var errSilent = errors.New("too many bytes before the first request")

func (c *conn) Close() error {
	c.listener.mu.Lock()
	c.listener.remove(c)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}

// connOf returns the connection of a request, or nil if it comes from another listener.
func connOf(r *http.Request) *conn {
	c := r.Context().Value(connKey{})
	for {
		t, ok := c.(interface{ NetConn() net.Conn }) // TLS
		if !ok {
			own, _ := c.(*conn)
			return own
		}
		c = t.NetConn()
	}
}

// granted reports whether a request has access, as access.granted does. Then its connection is the
// one of a client.
func (s *Server) granted(r *http.Request, other string) bool {
	if !s.access.granted(r, other) {
		return false
	}
	if c := connOf(r); c != nil && !c.known {
		c.known = c.identify(r.TLS)
		return c.known
	}
	return true
}

// identify notes that a connection is the one of a client. The connection ends when the certificate
// of the client does, also while messages or an answer are sent. identify reports false if the
// certificate has expired since the handshake.
func (c *conn) identify(state *tls.ConnectionState) bool {
	end := endOf(state)
	if !end.IsZero() && !time.Now().Before(end) {
		c.Close()
		return false
	}
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	c.listener.leave(c)
	if !c.closed && !end.IsZero() {
		c.expiry = time.AfterFunc(time.Until(end), func() { c.Close() })
	}
	return true
}

// endOf returns when the first of the certificates that a client has shown ends. It is zero if it has
// shown none. The certificate of the authority is not among them.
func endOf(state *tls.ConnectionState) (end time.Time) {
	if state == nil {
		return end
	}
	for _, c := range state.PeerCertificates {
		if end.IsZero() || c.NotAfter.Before(end) {
			end = c.NotAfter
		}
	}
	return end
}
