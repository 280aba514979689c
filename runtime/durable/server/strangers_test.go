package server_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/durable/client"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/server"
)

// An attacker opens connections and sends no token. It closes them after the test.
type attacker struct {
	conns   []net.Conn
	sends   sync.WaitGroup
	answers chan int // the statuses of responses; 0: the server has closed a connection without one
}

func attack(t *testing.T) *attacker {
	a := &attacker{answers: make(chan int, 10_000)}
	t.Cleanup(a.close)
	return a
}

func (a *attacker) close() {
	for _, c := range a.conns {
		c.Close()
	}
}

// send sends text over a new connection, in the background. The answer is in answers.
func (a *attacker) send(address, text string) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return // the server has closed it at once
	}
	a.conns = append(a.conns, c)
	a.sends.Go(func() {
		io.WriteString(c, text) // the server may have closed the connection
	})
	go func() {
		response, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			a.answers <- 0
			return
		}
		a.answers <- response.StatusCode
	}()
}

// TestBodiesOfStrangers: bodies without a token do not use the memory for the bodies of clients, and
// little of their own.
func TestBodiesOfStrangers(t *testing.T) {
	t.Parallel()
	s := listen(t, server.Config{Tokens: []string{token}, BodyTimeout: patience, HeaderTimeout: patience})
	defer closeAtOnce(t, s)
	a := attack(t)
	for part, n := 2_200_000, 40; part > 1000; part, n = part/2, 4 { // smaller ones fill what the larger ones leave
		for range n {
			a.send(s.Address(), "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4000000\r\n\r\n"+strings.Repeat(" ", part))
		}
	}
	until(t, "short bodies use up the memory for bodies of strangers", func() bool {
		a.send(s.Address(), "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 65536\r\n\r\n"+strings.Repeat(" ", 65_000))
		a.send(s.Address(), "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n2000\r\n"+strings.Repeat(" ", 5000))
		return s.BodyBytes() > 3<<20
	})
	a.sends.Wait()
	c := connect(t, s, client.Options{Token: token})
	data := strings.Repeat("x", 3_000_000)
	for i := range 3 {
		do(t, c, 200, protocol.PromiseCreate{ID: fmt.Sprint("large", i), TimeoutAt: later(), Param: protocol.Value{Data: &data}})
		do(t, c, 200, protocol.PromiseCreate{ID: fmt.Sprint("small", i), TimeoutAt: later()})
	}
	until(t, "the bodies of strangers have at most 4 MiB", func() bool { return s.StrangerBytes() <= 4<<20 })
}

// TestLongBodiesWithTokenInHead: a long request needs its token in the header. A short one of a
// client that has it in the head counts as one of a client as soon as the token is known.
func TestLongBodiesWithTokenInHead(t *testing.T) {
	t.Parallel()
	s := listen(t, server.Config{Tokens: []string{token}})
	defer closeAtOnce(t, s)
	for _, test := range []struct {
		auth, header string
		length       int
		status       int
	}{
		{token, "", 64 << 10, 404},
		{token, "", 64<<10 + 1, 401},
		{token, "", 3 << 20, 401},
		{"wrong", "", 64 << 10, 401},
		{token, "Bearer " + token, 3 << 20, 404},
	} {
		text := envelope("promise.get", "1", `,"auth":"`+test.auth+`"`, `{"id":"a"}`)
		text += strings.Repeat(" ", test.length-len(text))
		for name, body := range map[string]io.Reader{"announced": strings.NewReader(text), "in pieces": io.MultiReader(strings.NewReader(text))} {
			r, err := http.NewRequestWithContext(t.Context(), "POST", s.URL(), body)
			if err != nil {
				t.Fatal(err)
			}
			if test.header != "" {
				r.Header.Set("Authorization", test.header)
			}
			response, err := http.DefaultTransport.RoundTrip(r)
			if err != nil {
				if test.length > 1<<20 && test.status == 401 { // the server closes the connection while the client still sends
					continue
				}
				t.Fatal(err)
			}
			answer, _ := io.ReadAll(response.Body)
			response.Body.Close()
			if response.StatusCode != test.status {
				t.Errorf("%d bytes %s, auth %q, header %q: got status %d, want %d: %s", test.length, name, test.auth, test.header, response.StatusCode, test.status, answer)
			}
			if explained := strings.Contains(string(answer), "header Authorization"); explained != (test.length > 64<<10 && test.status == 401) {
				t.Errorf("%d bytes %s, auth %q: the answer is %s", test.length, name, test.auth, answer)
			}
		}
	}
}

// idle has what connections of strangers send before they wait.
var idle = map[string]string{
	"silent":        "",
	"slow header":   "GET /health HTTP/1.1\r\nHost: localhost\r\nX: ",
	"no token":      "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
	"wrong token":   "GET /health HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer wrong\r\n\r\n",
	"wrong method":  "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
	"of a page":     "GET /health HTTP/1.1\r\nHost: localhost\r\nOrigin: https://example.com\r\n\r\n",
	"half a body":   "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{",
	"refused body":  "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}",
	"unread answer": strings.Repeat("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/html\r\n\r\n", 1000),
}

// TestRefusalsOfStrangers: a connection of a stranger gets one refusal, whatever the reason.
func TestRefusalsOfStrangers(t *testing.T) {
	t.Parallel()
	s := listen(t, server.Config{Tokens: []string{token}})
	defer closeAtOnce(t, s)
	for name, head := range map[string]string{
		"no token":     "GET /health HTTP/1.1\r\nHost: localhost\r\n",
		"wrong method": "GET / HTTP/1.1\r\nHost: localhost\r\n",
		"of a page":    "GET /health HTTP/1.1\r\nHost: localhost\r\nOrigin: https://example.com\r\n",
		"no JSON":      "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/html\r\nContent-Length: 0\r\n",
	} {
		c, err := net.Dial("tcp", s.Address())
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(c, strings.Repeat(head+"\r\n", 10)) // the server may have closed the connection
		answers, _ := io.ReadAll(c)                        // the error is that of a closed connection
		if n := strings.Count(string(answers), "HTTP/1.1 4"); n != 1 {
			t.Errorf("%s: %d answers, want 1", name, n)
		}
		c.Close()
	}
}

// TestConnectionsOfStrangers: connections that have shown no token keep no client out. Those of
// clients stay open.
func TestConnectionsOfStrangers(t *testing.T) {
	t.Parallel()
	for name, text := range idle {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := listen(t, server.Config{Tokens: []string{token}, ConnectionsMax: 16, MetricsListen: "127.0.0.1:0", HeaderTimeout: patience, BodyTimeout: patience})
			defer closeAtOnce(t, s)
			besiege(t, s, &http.Transport{}, s.Address(), "/health", text, 20)
			besiege(t, s, &http.Transport{}, s.MetricsAddress(), "/metrics", text, 270)
		})
	}
	t.Run("silent with TLS", func(t *testing.T) {
		t.Parallel()
		a := newAuthority(t)
		s := listen(t, server.Config{
			ConnectionsMax: 16, HeaderTimeout: patience,
			TLS: &tls.Config{Certificates: []tls.Certificate{a.issue(t, x509.ExtKeyUsageServerAuth)}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: a.pool()},
		})
		defer closeAtOnce(t, s)
		known := &tls.Config{RootCAs: a.pool(), Certificates: []tls.Certificate{a.issue(t, x509.ExtKeyUsageClientAuth)}}
		besiege(t, s, &http.Transport{TLSClientConfig: known}, s.Address(), "/health", "", 20)
	})
}

// TestThousandsOfStrangers has more connections of strangers than a server accepts.
func TestThousandsOfStrangers(t *testing.T) {
	speed.Landing(t)
	speed.NoRace(t)
	s := listen(t, server.Config{Tokens: []string{token}, HeaderTimeout: patience})
	defer closeAtOnce(t, s)
	for _, name := range []string{"silent", "no token"} {
		besiege(t, s, &http.Transport{}, s.Address(), "/health", idle[name], 4200)
	}
}

// besiege opens connections of strangers, more than the listener at the address accepts, between the
// requests of clients, which must all be answered.
func besiege(t *testing.T, s *server.Server, old *http.Transport, address, path, text string, strangers int) {
	t.Helper()
	get := func(transport *http.Transport) {
		t.Helper()
		scheme, _, _ := strings.Cut(s.URL(), "://")
		r, err := http.NewRequestWithContext(t.Context(), "GET", scheme+"://"+address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		response, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if response.StatusCode != 200 {
			t.Errorf("%s: got status %d", path, response.StatusCode)
		}
	}
	defer old.CloseIdleConnections()
	get(old)
	dials := 0
	dialer := new(net.Dialer)
	old.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		dials++
		return dialer.DialContext(ctx, network, address)
	}
	a := attack(t)
	for range 3 {
		for range strangers {
			a.send(address, text)
		}
		a.sends.Wait()
		get(&http.Transport{DisableKeepAlives: true, TLSClientConfig: old.TLSClientConfig})
		get(old)
	}
	if dials > 0 {
		t.Errorf("%s: an idle connection of a client was closed", path)
	}
	a.close()
}

// TestRefusedConnections: a connection is closed with the answer that its request has no access.
func TestRefusedConnections(t *testing.T) {
	t.Parallel()
	s := listen(t, server.Config{Tokens: []string{token}, MetricsListen: "127.0.0.1:0"})
	for _, header := range []http.Header{nil, {"Authorization": {"Bearer wrong"}}} {
		for _, e := range endpoints {
			url := s.URL() + e.path
			if path, ok := cutMetrics(e.path); ok {
				url = "http://" + s.MetricsAddress() + path
			}
			response, _ := exchange(t, e.method, url, e.body, header)
			if response.StatusCode != 401 || !response.Close {
				t.Errorf("%s %s with %v: got status %d, close %v", e.method, e.path, header, response.StatusCode, response.Close)
			}
		}
	}
}

// TestLongHandshake: a stranger cannot make the server keep a message of TLS of 256 KiB, the most that
// TLS allows.
func TestLongHandshake(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	s := listen(t, server.Config{HeaderTimeout: time.Hour, TLS: &tls.Config{
		Certificates: []tls.Certificate{a.issue(t, x509.ExtKeyUsageServerAuth)}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: a.pool(),
	}})
	defer closeAtOnce(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	long := &stalledHandshakes{address: s.Address(), key: a.key}
	long.connect(ctx, 100_000)
	if ctx.Err() != nil {
		t.Error("the server waits for the rest of a message of 250 KB")
	}
}

// TestSlowClientsMakeRoom: clients that send or read nothing do not refuse the requests of others.
func TestSlowClientsMakeRoom(t *testing.T) {
	t.Parallel()
	s := listen(t, server.Config{BodiesMax: 2 * protocol.MaxBody, ResponsesMax: 20 << 20, BodyTimeout: time.Hour, WriteTimeout: time.Hour})
	defer closeAtOnce(t, s)
	c := connect(t, s, client.Options{})
	data := strings.Repeat("x", 4_000_000)
	do(t, c, 200, protocol.PromiseCreate{ID: "large", TimeoutAt: later(), Param: protocol.Value{Data: &data}})
	do(t, c, 200, protocol.PromiseSettle{ID: "large", State: protocol.Resolved, Value: protocol.Value{Data: &data}})
	get := envelope("promise.get", "1", "", `{"id":"large"}`)
	for name, text := range map[string]string{
		"bodies":    stalled("", 150_000)[0], // 32 of them use up the memory
		"responses": post("", len(get), get),
	} {
		a := attack(t)
		for range 40 {
			a.send(s.Address(), text)
		}
		a.sends.Wait()
		for range 3 {
			until(t, name+" make room", func() bool {
				a.send(s.Address(), text)
				res, err := c.Do(t.Context(), protocol.PromiseCreate{ID: name, TimeoutAt: later()})
				return err == nil && res.Status == 200
			})
		}
		a.close()
	}
}
