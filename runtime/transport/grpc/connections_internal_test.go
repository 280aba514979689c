package grpc

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener with one connection.
type pipes struct {
	net.Listener
	conn net.Conn
}

func (p *pipes) Accept() (net.Conn, error) { return p.conn, nil }

// TestReadAhead: while the other end takes nothing, only a limited number of bytes is read from it.
func TestReadAhead(t *testing.T) {
	for name, end := range map[string]func(c net.Conn, there net.Conn) error{
		"taken":  func(_, there net.Conn) error { _, err := there.Read(make([]byte, 8)); return err },
		"closed": func(c, _ net.Conn) error { return c.Close() },
		"late":   func(net.Conn, net.Conn) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				here, there := net.Pipe()
				defer there.Close()
				c, err := newConnections(&pipes{conn: here}, 1, func(net.Addr) {}).Accept()
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				go there.Write(make([]byte, 2*aheadMax))
				read := func(bytes int) (err error) {
					for n := 0; bytes > 0 && err == nil; bytes -= n {
						n, err = c.Read(make([]byte, min(bytes, 4096)))
					}
					return err
				}
				if err := read(aheadMax / 2); err != nil {
					t.Fatal(err)
				}
				go c.Write(make([]byte, 8))
				synctest.Wait()
				if err := read(aheadMax); err != nil {
					t.Fatal(err)
				}
				began, further := time.Now(), make(chan error, 1)
				go func() { further <- read(1) }()
				synctest.Wait()
				select {
				case err := <-further:
					t.Fatalf("read beyond the limit: %v", err)
				default:
				}
				if err := end(c, there); err != nil {
					t.Error(err)
				}
				err = <-further
				waited := time.Since(began)
				if ok := map[string]bool{
					"taken": err == nil && waited == 0, "closed": errors.Is(err, net.ErrClosed) && waited == 0, "late": err != nil && waited == answerTimeMax,
				}; !ok[name] {
					t.Errorf("after %v: %v", waited, err)
				}
			})
		})
	}
}
