package grpc

import (
	"container/list"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/topogen/topogen/runtime/transport/certs"
)

// connections is a listener that limits the number of connections. Beyond the limit it
// closes the oldest unidentified connection, so that clients that never identify
// themselves cannot keep peers out. If all connections are identified, it refuses the
// new one.
type connections struct {
	net.Listener
	limit    int
	ownerMax int // connections with one certificate
	refused  func(net.Addr)

	mu           sync.Mutex
	owners       map[certs.ID]int       // connections with each certificate
	open         map[string]*connection // by remote address
	unidentified *list.List             // of *connection, oldest first
}

// connection is a connection of such a listener. The lock of connections protects its
// fields.
type connection struct {
	net.Conn
	all          *connections
	uses         int           // streams of peers, and calls of operators
	unidentified *list.Element // nil: in use, or closed
	owner        certs.ID      // of its certificate; zero: not known
	gone         chan struct{} // closed with the connection
	goneOnce     sync.Once

	writes  atomic.Uint64 // odd during a write
	written chan struct{} // gets a value after a write
	during  uint64        // the value of writes when the bytes of ahead were read; only Read uses it
	ahead   int
}

// Gone is closed when the connection is closed.
func (c *connection) Gone() <-chan struct{} { return c.gone }

func newConnections(l net.Listener, limit int, refused func(net.Addr)) *connections {
	return &connections{Listener: l, limit: limit, ownerMax: ownerConnectionsMax, refused: refused, owners: make(map[certs.ID]int), open: make(map[string]*connection), unidentified: list.New()}
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
			_ = old.Close()
		}
		if c != nil {
			return c, nil
		}
	}
}

// add adds a connection. old is a connection that must be closed instead. c is nil if
// the new connection must be closed.
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
	c = &connection{Conn: conn, all: l, gone: make(chan struct{}), written: make(chan struct{}, 1)}
	c.unidentified = l.unidentified.PushBack(c)
	l.open[conn.RemoteAddr().String()] = c
	return c, old
}

// remove forgets a connection. The lock must be held.
func (l *connections) remove(c *connection) {
	if c.unidentified != nil {
		l.unidentified.Remove(c.unidentified)
		c.unidentified = nil
	}
	if address := c.RemoteAddr().String(); l.open[address] == c {
		delete(l.open, address)
	}
	if c.owner != (certs.ID{}) {
		if l.owners[c.owner]--; l.owners[c.owner] == 0 {
			delete(l.owners, c.owner)
		}
		c.owner = certs.ID{}
	}
}

// identify records the certificate of the connection from an address. It returns false if
// there are as many others with this certificate as are allowed.
func (l *connections) identify(address net.Addr, owner certs.ID) (others int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if others = l.owners[owner]; others >= l.ownerMax {
		return others, false
	}
	if c := l.open[address.String()]; c != nil { // else it has been closed to make room
		c.owner = owner
		l.owners[owner]++
	}
	return others, true
}

// acquire records that a peer or an operator uses the connection from an address.
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

// release records the end of a use.
func (l *connections) release(address net.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.open[address.String()]; c != nil && c.uses > 0 {
		if c.uses--; c.uses == 0 {
			c.unidentified = l.unidentified.PushBack(c)
		}
	}
}

// Read reads, unless a write has waited for the other end while aheadMax bytes were read. gRPC
// keeps some answers without limit, and goes on to read.
func (c *connection) Read(b []byte) (int, error) {
	if writes := c.writes.Load(); writes%2 == 0 || writes != c.during {
		c.during, c.ahead = writes, 0
	} else if c.ahead >= aheadMax {
		if err := c.wait(writes); err != nil {
			return 0, err
		}
	}
	n, err := c.Conn.Read(b)
	c.ahead += n
	return n, err
}

// wait waits for the end of a write.
func (c *connection) wait(write uint64) error {
	limit := time.NewTimer(answerTimeMax)
	defer limit.Stop()
	for c.writes.Load() == write {
		select {
		case <-c.written:
		case <-c.gone:
			return net.ErrClosed
		case <-limit.C:
			return fmt.Errorf("the other end has taken nothing for %v", answerTimeMax)
		}
	}
	return nil
}

func (c *connection) Write(b []byte) (int, error) {
	c.writes.Add(1)
	n, err := c.Conn.Write(b)
	c.writes.Add(1)
	select {
	case c.written <- struct{}{}:
	default:
	}
	return n, err
}

func (c *connection) Close() error {
	c.goneOnce.Do(func() { close(c.gone) })
	c.all.mu.Lock()
	c.all.remove(c)
	c.all.mu.Unlock()
	return c.Conn.Close()
}
