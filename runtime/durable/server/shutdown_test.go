package server_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/durable/client"
	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/server"
)

// TestShutdown closes a server under load: every request that was answered has taken
// effect, the streams end, and nothing hangs.
func TestShutdown(t *testing.T) {
	e := openEngine(t, engine.Config{})
	s := listen(t, server.Config{Backend: e, KeepAlive: time.Hour})
	worker := open(t, s, "g", "p")
	var wait sync.WaitGroup
	var mu sync.Mutex
	var answered []string
	many := make(chan struct{})
	for i := range 16 {
		c := connect(t, s, client.Options{})
		wait.Go(func() {
			for n := 0; ; n++ {
				id := fmt.Sprintf("%d.%d", i, n)
				res, err := c.Do(context.Background(), protocol.PromiseCreate{ID: id, TimeoutAt: later()})
				if err != nil {
					return // the socket is closed
				}
				if res.Status != 200 {
					t.Errorf("got status %d: %s", res.Status, res.Error)
					return
				}
				mu.Lock()
				if answered = append(answered, id); len(answered) == 500 {
					close(many)
				}
				mu.Unlock()
			}
		})
	}
	<-many
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
	wait.Wait()
	if _, err := worker.r.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("the stream: %v, want its end", err)
	}
	for _, id := range answered {
		do(t, e, 200, protocol.PromiseGet{ID: id})
	}
}

// TestShutdownAnswers: a request that is being carried out is answered, and new ones are
// not accepted, also by the server of the metrics.
func TestShutdownAnswers(t *testing.T) {
	h := hold(openEngine(t, engine.Config{}))
	s := listen(t, server.Config{Backend: h, MetricsListen: "127.0.0.1:0"})
	defer h.free()
	c := connect(t, s, client.Options{})
	answered := make(chan error, 1)
	go func() {
		res, err := c.Do(t.Context(), protocol.PromiseCreate{ID: "held", TimeoutAt: later()})
		if err == nil && res.Status != 200 {
			err = errors.New(res.Error)
		}
		answered <- err
	}()
	<-h.entered
	unused, err := net.Dial("tcp", s.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer unused.Close()
	closed := make(chan error, 1)
	go func() { closed <- s.Close(t.Context()) }()
	for _, address := range []string{s.Address(), s.MetricsAddress()} {
		until(t, "the socket is closed", func() bool {
			c, err := net.Dial("tcp", address)
			if err == nil {
				c.Close()
			}
			return err != nil
		})
	}
	if _, err := unused.Read(make([]byte, 1)); err == nil {
		t.Error("the connection without a request received a byte")
	}
	select {
	case err := <-closed:
		t.Fatalf("Close has returned before the request was answered: %v", err)
	default:
	}
	h.free()
	if err := <-answered; err != nil {
		t.Errorf("the request: %v", err)
	}
	if err := <-closed; err != nil {
		t.Errorf("close: %v", err)
	}
}

// TestShutdownOfUnusedConnections: Close does not wait for connections without a request, also if
// their TLS handshake is done, or a part of a header has arrived.
func TestShutdownOfUnusedConnections(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	plain := listen(t, server.Config{MetricsListen: "127.0.0.1:0"})
	secure := listen(t, server.Config{TLS: &tls.Config{Certificates: []tls.Certificate{a.issue(t, x509.ExtKeyUsageServerAuth)}}})
	for _, test := range []struct{ address, begin string }{
		{plain.Address(), ""}, {plain.Address(), "POST / HTTP/1.1\r\n"}, {plain.MetricsAddress(), ""}, {secure.Address(), ""},
	} {
		c, err := net.Dial("tcp", test.address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, test.begin); err != nil {
			t.Fatal(err)
		}
	}
	c, err := tls.Dial("tcp", secure.Address(), &tls.Config{RootCAs: a.pool()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second) // less than the five seconds of net/http
	defer cancel()
	if err := errors.Join(plain.Close(ctx), secure.Close(ctx)); err != nil {
		t.Errorf("close: %v", err)
	}
}

// TestShutdownGivesUp: Close returns when its context ends, although a request is not
// answered.
func TestShutdownGivesUp(t *testing.T) {
	h := hold(openEngine(t, engine.Config{}))
	s, err := server.Listen(server.Config{Backend: h, Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer h.free()
	c := connect(t, s, client.Options{})
	answered := make(chan error, 1)
	go func() {
		_, err := c.Do(t.Context(), protocol.PromiseCreate{ID: "held", TimeoutAt: later()})
		answered <- err
	}()
	<-h.entered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Close(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("close: %v, want %v", err, context.Canceled)
	}
	if err := <-answered; err == nil {
		t.Error("the request was answered")
	}
}
