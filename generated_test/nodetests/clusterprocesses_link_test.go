package nodetests_test

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// link passes connections on to a node, for one of the other nodes.
type link struct {
	listener net.Listener
	to       string
	accepted atomic.Int64 // connections, with the refused ones
	passed   atomic.Int64 // bytes, in both directions

	mu    sync.Mutex
	cut   bool
	still chan struct{} // closed when bytes may pass again; nil: they pass
	conns map[net.Conn]bool
}

func newLink(t *testing.T, to string) *link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &link{listener: listener, to: to, conns: map[net.Conn]bool{}}
	t.Cleanup(func() {
		listener.Close()
		l.cutAll()
	})
	go l.serve()
	return l
}

func (l *link) serve() {
	for {
		in, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.accepted.Add(1)
		out, err := net.Dial("tcp", l.to)
		if err != nil || !l.add(in, out) {
			in.Close()
			if out != nil {
				out.Close()
			}
			continue
		}
		go l.pass(in, out)
		go l.pass(out, in)
	}
}

// add keeps a pair of connections, unless the link is cut.
func (l *link) add(conns ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		return false
	}
	for _, c := range conns {
		l.conns[c] = true
	}
	return true
}

// pass copies bytes in one direction until a connection ends.
func (l *link) pass(from, to net.Conn) {
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, c := range []net.Conn{from, to} {
			c.Close()
			delete(l.conns, c)
		}
	}()
	b := make([]byte, 16<<10)
	for {
		n, err := from.Read(b)
		l.mu.Lock()
		still := l.still
		l.mu.Unlock()
		if still != nil {
			<-still
		}
		if n > 0 {
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
			l.passed.Add(int64(n))
		}
		if err != nil {
			return
		}
	}
}

// cutAll ends all connections and refuses new ones.
func (l *link) cutAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
	if l.still != nil {
		close(l.still)
		l.still = nil
	}
	for c := range l.conns {
		c.Close()
	}
}

// stall keeps the connections, but nothing passes.
func (l *link) stall() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.still == nil {
		l.still = make(chan struct{})
	}
}

// heal ends a cut or a stall.
func (l *link) heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = false
	if l.still != nil {
		close(l.still)
		l.still = nil
	}
}
