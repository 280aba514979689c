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
// closes a connection for each new one, in this order: the oldest one of a stranger, as long
// as there are more than strangersKept; the oldest one of a client; of an operator; of a
// node that uses it for nothing; of a stranger. So nobody is kept out by others that have shown
// less, and new connections always have the time for a handshake. If nodes use all
// connections, it refuses the new one.
//
// Among strangers it closes connections of the host that has most. So a host that
// opens many connections does not end the handshakes of others.
type connections struct {
	net.Listener
	limit         int
	ownerMax      int // connections with one certificate
	strangersKept int
	refused       func(net.Addr)

	mu     sync.Mutex
	owners map[certs.ID]int       // connections with each certificate
	open   map[string]*connection // by remote address
	hosts  map[string]int         // connections of strangers from each host
	idle   [roles]*list.List      // of *connection, oldest first: all that may be closed
}

// role is what the other end of a connection has shown.
type role int

const (
	roleStranger role = iota
	roleClient
	roleOperator
	roleNode
	roles
)

func roleOf(id certs.ID) role {
	switch {
	case id.Client != "":
		return roleClient
	case id.Operator != "":
		return roleOperator
	}
	return roleNode
}

// connection is a connection of such a listener. The lock of connections protects its
// fields; those after the empty line belong to reads and writes.
type connection struct {
	net.Conn
	all      *connections
	host     string
	role     role
	uses     int           // streams of peers, and calls of nodes
	idle     *list.Element // nil: in use, or closed
	owner    certs.ID      // of its certificate; zero: not known
	gone     chan struct{} // closed with the connection
	goneOnce sync.Once

	writes  atomic.Uint64 // odd during a write
	written chan struct{} // gets a value after a write
	during  uint64        // the value of writes when the bytes of ahead were read; only Read uses it
	ahead   int
}

// Gone is closed when the connection is closed.
func (c *connection) Gone() <-chan struct{} { return c.gone }

func newConnections(l net.Listener, limit int, refused func(net.Addr)) *connections {
	c := &connections{
		Listener: l, limit: limit, ownerMax: ownerConnectionsMax, strangersKept: strangersKept, refused: refused,
		owners: make(map[certs.ID]int), open: make(map[string]*connection), hosts: make(map[string]int),
	}
	for r := range c.idle {
		c.idle[r] = list.New()
	}
	return c
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
		o := l.oldest()
		if o == nil {
			return nil, conn
		}
		l.remove(o)
		old = o
	}
	c = &connection{
		Conn: conn, all: l, host: hostOf(conn.RemoteAddr()),
		gone: make(chan struct{}), written: make(chan struct{}, 1),
	}
	l.open[conn.RemoteAddr().String()] = c
	l.rest(c)
	return c, old
}

// oldest returns the connection to close for another one, or nil.
func (l *connections) oldest() *connection {
	if l.idle[roleStranger].Len() <= l.strangersKept {
		for _, idle := range l.idle[roleClient:] {
			if e := idle.Front(); e != nil {
				return e.Value.(*connection)
			}
		}
	}
	most := 0
	for _, n := range l.hosts {
		most = max(most, n)
	}
	for e := l.idle[roleStranger].Front(); e != nil; e = e.Next() {
		if c := e.Value.(*connection); l.hosts[c.host] == most {
			return c
		}
	}
	return nil
}

// hostOf returns the host of an address, or its network with IPv6, where a host has many addresses.
func hostOf(address net.Addr) string {
	a, ok := address.(*net.TCPAddr)
	if !ok {
		return address.String()
	}
	if a.IP.To4() == nil {
		return a.IP.Mask(net.CIDRMask(64, 128)).String()
	}
	return a.IP.String()
}

// rest adds a connection to those that may be closed. The lock must be held.
func (l *connections) rest(c *connection) {
	c.idle = l.idle[c.role].PushBack(c)
	if c.role == roleStranger {
		l.hosts[c.host]++
	}
}

// use removes a connection from those that may be closed. The lock must be held.
func (l *connections) use(c *connection) {
	if c.idle == nil {
		return
	}
	l.idle[c.role].Remove(c.idle)
	c.idle = nil
	if c.role == roleStranger {
		if l.hosts[c.host]--; l.hosts[c.host] == 0 {
			delete(l.hosts, c.host)
		}
	}
}

// remove forgets a connection. The lock must be held.
func (l *connections) remove(c *connection) {
	l.use(c)
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
		l.use(c)
		c.role = roleOf(owner)
		l.rest(c)
	}
	return others, true
}

// acquire records that a node uses the connection from an address.
func (l *connections) acquire(address net.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.open[address.String()]; c != nil {
		c.uses++
		l.use(c)
	}
}

// release records the end of a use.
func (l *connections) release(address net.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.open[address.String()]; c != nil && c.uses > 0 {
		if c.uses--; c.uses == 0 {
			l.rest(c)
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
