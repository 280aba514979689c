package grpc

import (
	"container/list"
	"net"
	"sync"
)

// connections is a listener with a limit. Beyond it the oldest connection ends of which
// it is not known who is at the other end, so that strangers who say nothing do not keep
// peers out. Where all are known, a new one is refused.
type connections struct {
	net.Listener
	limit   int
	refused func(net.Addr)

	mu           sync.Mutex
	open         map[string]*connection // by the other end's address
	unidentified *list.List             // of *connection, the oldest first
}

// connection is one of them. Its fields belong to the lock of connections.
type connection struct {
	net.Conn
	all          *connections
	uses         int           // streams of peers, and calls of operators
	unidentified *list.Element // nil: it is in use, or has ended
}

func newConnections(l net.Listener, limit int, refused func(net.Addr)) *connections {
	return &connections{Listener: l, limit: limit, refused: refused, open: make(map[string]*connection), unidentified: list.New()}
}

func (l *connections) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c, old := l.add(conn)
		if old != nil {
			l.refused(old.RemoteAddr())
			_ = old.Close() // it is not needed
		}
		if c != nil {
			return c, nil
		}
	}
}

// add adds a connection, and returns the connection that is to end for it. c is nil where
// the new connection is to end.
func (l *connections) add(conn net.Conn) (c *connection, old net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) >= l.limit {
		oldest := l.unidentified.Front()
		if oldest == nil {
			return nil, conn
		}
		o := oldest.Value.(*connection)
		l.remove(o)
		old = o
	}
	c = &connection{Conn: conn, all: l}
	c.unidentified = l.unidentified.PushBack(c)
	l.open[conn.RemoteAddr().String()] = c
	return c, old
}

// remove forgets a connection; l is locked.
func (l *connections) remove(c *connection) {
	if c.unidentified != nil {
		l.unidentified.Remove(c.unidentified)
		c.unidentified = nil
	}
	if address := c.RemoteAddr().String(); l.open[address] == c {
		delete(l.open, address)
	}
}

// known notes that a peer or an operator uses the connection from an address.
func (l *connections) acquire(address net.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.open[address.String()]; c != nil {
		c.uses++
		if c.unidentified != nil {
			l.unidentified.Remove(c.unidentified)
			c.unidentified = nil
		}
	}
}

// unknown notes that a use has ended.
func (l *connections) release(address net.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.open[address.String()]; c != nil && c.uses > 0 {
		if c.uses--; c.uses == 0 {
			c.unidentified = l.unidentified.PushBack(c)
		}
	}
}

func (c *connection) Close() error {
	c.all.mu.Lock()
	c.all.remove(c)
	c.all.mu.Unlock()
	return c.Conn.Close()
}
