package client

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// TestOtherCertificates: a client uses other certificates for new connections, after ten seconds or
// after an error. A request that has begun keeps its connection.
func TestOtherCertificates(t *testing.T) {
	names, goOn, begun := make(chan string, 10), make(chan struct{}), make(chan struct{}, 10)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		names <- r.TLS.ServerName
		if r.URL.Path != "/" {
			begun <- struct{}{}
			<-goOn
		}
		w.WriteHeader(http.StatusBadGateway)
	}))
	s.StartTLS()
	defer s.Close()
	config := func(name string) *tls.Config {
		return &tls.Config{ServerName: name, InsecureSkipVerify: true}
	}
	first, second := config("first.example"), config("second.example")
	var current atomic.Pointer[tls.Config]
	current.Store(first)
	c, err := New(s.URL, Options{Certificates: current.Load})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r := c.transport.(*reloading)
	do := func(want string) {
		t.Helper()
		_, err := c.Do(t.Context(), protocol.PromiseGet{ID: "a"})
		select {
		case got := <-names:
			if got != want {
				t.Errorf("the connection has the certificates of %s, want %s", got, want)
			}
		default:
			t.Fatal(err)
		}
	}
	do("first.example")
	ended := make(chan error)
	go func() {
		u := *c.post
		u.Path = "/slow"
		response, err := c.transport.RoundTrip(&http.Request{Method: http.MethodGet, URL: &u, Header: http.Header{}})
		if err == nil {
			err = response.Body.Close()
		}
		ended <- err
	}()
	select {
	case <-begun:
	case err := <-ended:
		t.Fatal(err)
	}
	<-names
	current.Store(second)
	do("first.example") // the client has just looked
	r.mu.Lock()
	r.asked = r.asked.Add(-reloadPeriod)
	r.mu.Unlock()
	do("second.example")
	close(goOn)
	if err := <-ended; err != nil {
		t.Errorf("a request that had begun: %v", err)
	}
	current.Store(first)
	s.CloseClientConnections()
	s.Listener.Close()
	if _, err := c.Do(t.Context(), protocol.PromiseGet{ID: "a"}); err == nil {
		t.Error("the server is closed, but it has answered")
	}
	if r.current(); r.config != first {
		t.Error("after an error the client has not looked at its certificates")
	}
}
