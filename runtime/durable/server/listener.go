package server

import (
	"net"
	"sync"
	"sync/atomic"
)

// A listener accepts a limited number of connections. It closes further ones at once, so
// that their clients do not wait in vain.
type listener struct {
	*net.TCPListener
	max     int64
	open    atomic.Int64
	refused *atomic.Uint64
}

func newListener(l *net.TCPListener, max int, refused *atomic.Uint64) *listener {
	return &listener{TCPListener: l, max: int64(max), refused: refused}
}

func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.AcceptTCP()
		if err != nil {
			return nil, err
		}
		if l.open.Add(1) <= l.max {
			return &conn{TCPConn: c, open: &l.open}, nil
		}
		l.open.Add(-1)
		l.refused.Add(1)
		c.SetLinger(0) // the port of the client is not needed for a refused connection
		c.Close()
	}
}

// A conn counts as open until it is closed.
type conn struct {
	*net.TCPConn
	open *atomic.Int64
	once sync.Once
}

func (c *conn) Close() error {
	c.once.Do(func() { c.open.Add(-1) })
	return c.TCPConn.Close()
}
