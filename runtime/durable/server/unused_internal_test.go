package server

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
)

// pipes is a listener for connections in memory.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// dial opens a connection. The server gets what wrap returns.
func (p *pipes) dial(wrap func(net.Conn) net.Conn) net.Conn {
	c, other := net.Pipe()
	p.conns <- wrap(other)
	return c
}

const request = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"

func same(c net.Conn) net.Conn { return c }

// overPipes returns a server in memory, and the listeners of the protocol and of the metrics.
func overPipes(handle http.HandlerFunc) (s *Server, requests, scrapes *pipes) {
	s = &Server{closing: make(chan struct{}), failed: make(chan error, 2)}
	s.config.BodyTimeout, s.config.WriteTimeout = BodyTimeoutDefault, WriteTimeoutDefault
	s.http, s.scraped = s.newHTTP(handle), s.newHTTP(handle)
	requests, scrapes = newPipes(), newPipes()
	s.run(s.http, requests)
	s.run(s.scraped, scrapes)
	return s, requests, scrapes
}

func status(c net.Conn) (int, error) {
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0, err
	}
	return r.StatusCode, r.Body.Close()
}

// TestUnusedConnections: Close closes the connections without a request at once, those of both
// servers, and waits for the answers of requests.
func TestUnusedConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s, requests, scrapes := overPipes(func(http.ResponseWriter, *http.Request) { <-release })
		held := requests.dial(same)
		io.WriteString(held, request)
		unused := []net.Conn{requests.dial(same), requests.dial(same), scrapes.dial(same)}
		io.WriteString(unused[1], request[:len(request)-1])
		ended := make(chan error, len(unused))
		for _, c := range unused {
			go func() {
				_, err := c.Read(make([]byte, 1))
				ended <- err
			}()
		}
		synctest.Wait()
		if len(ended) > 0 {
			t.Fatalf("%d connections were closed before the server", len(ended))
		}
		closed := make(chan error, 1)
		go func() { closed <- s.Close(t.Context()) }()
		synctest.Wait()
		if len(ended) < len(unused) {
			t.Errorf("%d connections without a request are open", len(unused)-len(ended))
		}
		if len(closed) > 0 {
			t.Error("Close has returned before a request was answered")
		}
		close(release)
		if got, err := status(held); got != 200 {
			t.Errorf("the request in progress: got status %d, %v", got, err)
		}
		if err := <-closed; err != nil {
			t.Errorf("close: %v", err)
		}
	})
}

// stubborn is a connection that the first Close leaves open.
type stubborn struct {
	net.Conn
	tried bool
}

func (s *stubborn) Close() error {
	if !s.tried {
		s.tried = true
		return nil
	}
	return s.Conn.Close()
}

// TestRequestOfAClosedConnection: a request that arrives while Close closes its connection is not
// carried out.
func TestRequestOfAClosedConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, requests, _ := overPipes(func(http.ResponseWriter, *http.Request) { t.Error("the request was carried out") })
		c := requests.dial(func(c net.Conn) net.Conn { return &stubborn{Conn: c} })
		closed := make(chan error, 1)
		go func() { closed <- s.Close(t.Context()) }()
		synctest.Wait()
		io.WriteString(c, request)
		if got, err := status(c); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("got status %d, %v, want a closed connection", got, err)
		}
		if err := <-closed; err != nil {
			t.Errorf("close: %v", err)
		}
	})
}
