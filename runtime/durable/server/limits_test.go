package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/durable/client"
	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/server"
)

var openConfig engine.Config

func cutMetrics(path string) (string, bool) { return strings.CutPrefix(path, "metrics") }

// TestLongBodies: a body that is too long is refused, whether its length is announced or
// not, and the connection is closed.
func TestLongBodies(t *testing.T) {
	t.Parallel()
	s := listen(t, server.Config{BodyMax: 10_000})
	defer closeAtOnce(t, s)
	request := func(n int) string {
		text := envelope("promise.get", "1", "", `{"id":"a","x":"`)
		return strings.TrimSuffix(text, "}") + strings.Repeat("x", n-len(text)-len(`"}`)) + `"}}`
	}
	for _, test := range []struct {
		name   string
		body   io.Reader // other types than strings.Reader have no length
		status int
	}{
		{"the longest", strings.NewReader(request(10_000)), 404},
		{"the longest in pieces", io.MultiReader(strings.NewReader(request(10_000))), 404},
		{"too long", strings.NewReader(request(10_001)), 400},
		{"too long in pieces", io.MultiReader(strings.NewReader(request(10_001))), 400},
		{"much too long", strings.NewReader(strings.Repeat("x", 10<<20)), 400},
		{"without end", io.MultiReader(strings.NewReader(strings.Repeat("x", 10<<20)), neverEnds{}), 400},
	} {
		r, err := http.NewRequestWithContext(t.Context(), "POST", s.URL(), test.body)
		if err != nil {
			t.Fatal(err)
		}
		response, err := new(http.Transport).RoundTrip(r)
		if err != nil {
			// The server closes the connection while the client still sends.
			if test.status == 400 && r.ContentLength <= 0 || r.ContentLength > 1<<20 {
				continue
			}
			t.Fatalf("%s: %v", test.name, err)
		}
		body, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if response.StatusCode != test.status || test.status == 400 && (!response.Close || !strings.Contains(string(body), "longer than 10000 bytes")) {
			t.Errorf("%s: got status %d, close %v: %s", test.name, response.StatusCode, response.Close, body)
		}
	}
}

type neverEnds struct{}

func (neverEnds) Read(b []byte) (int, error) { return len(b), nil }

// TestHostileBodies sends bodies that are not requests.
func TestHostileBodies(t *testing.T) {
	s := listen(t, server.Config{})
	for name, body := range map[string]string{
		"empty":                     "",
		"binary":                    "\x00\x01\xff\xfe",
		"not UTF-8":                 envelope("promise.get", "1", "", "{\"id\":\"\xff\"}"),
		"a lone surrogate":          envelope("promise.get", "1", "", `{"id":"\ud800"}`),
		"nested deeply":             envelope("promise.get", "1", "", strings.Repeat(`{"a":`, 100_000)),
		"brackets":                  strings.Repeat("[", 4_000_000),
		"an id of 1 MB":             envelope("promise.get", "1", "", `{"id":"`+strings.Repeat("x", 1<<20)+`"}`),
		"an id with U+0000":         envelope("promise.get", "1", "", `{"id":"\u0000"}`),
		"a number beyond a double":  envelope("promise.create", "1", "", `{"id":"a","timeoutAt":1e400}`),
		"a time of 2^63":            envelope("promise.create", "1", "", `{"id":"a","timeoutAt":9223372036854775808}`),
		"an unknown version":        strings.Replace(envelope("promise.get", "1", "", `{"id":"a"}`), "2026-04-01", "2027-01-01", 1),
		"an id twice":               envelope("promise.get", "1", "", `{"id":"a","id":"b"}`),
		"tags of 1 MB":              envelope("promise.create", "1", "", `{"id":"a","timeoutAt":1,"tags":{"a":"`+strings.Repeat("x", 1<<20)+`"}}`),
		"a request within requests": envelope("task.fence", "1", "", `{"id":"a","version":1,"action":`+envelope("task.fence", "1", "", "{}")+`}`),
		"two requests":              envelope("promise.get", "1", "", `{"id":"a"}`) + envelope("promise.get", "2", "", `{"id":"a"}`),
	} {
		response, text := exchange(t, "POST", s.URL(), body, nil)
		if response.StatusCode != 400 || len(text) > 500 {
			t.Errorf("%s: got status %d with %d bytes: %.500s", name, response.StatusCode, len(text), text)
		}
	}
	do(t, connect(t, s, client.Options{}), 404, protocol.PromiseGet{ID: "a"})
}

// TestHeaders: a request whose header is too long or not HTTP is refused.
func TestHeaders(t *testing.T) {
	s := listen(t, server.Config{})
	defer closeAtOnce(t, s)
	if got := raw(t, s, "GET /health HTTP/1.1\r\nHost: localhost\r\nX: "+strings.Repeat("x", 64<<10)+"\r\n\r\n"); got != 431 {
		t.Errorf("a long header: got status %d, want 431", got)
	}
	if got := raw(t, s, "\x16\x03\x01\x00\xa5\r\n\r\n"); got != 400 {
		t.Errorf("not HTTP: got status %d, want 400", got)
	}
	if got := raw(t, s, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\n"); got != 400 {
		t.Errorf("two lengths: got status %d, want 400", got)
	}
}

// TestSlowWriters: a client that sends its request a byte at a time is disconnected, and
// others are not disturbed.
func TestSlowWriters(t *testing.T) {
	t.Parallel()
	s := listen(t, server.Config{HeaderTimeout: 100 * time.Millisecond, BodyTimeout: 100 * time.Millisecond})
	defer closeAtOnce(t, s)
	var clients sync.WaitGroup
	for name, begin := range map[string]string{
		"body":            "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{",
		"body in pieces":  "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
		"header":          "POST / HTTP/1.1\r\nHost: localhost\r\nX: ",
		"first line":      "POST /",
		"nothing":         "",
		"unread announce": "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4000000\r\n\r\n",
	} {
		clients.Go(func() {
			c, err := net.Dial("tcp", s.Address())
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			if _, err := io.WriteString(c, begin); err != nil {
				t.Error(err)
				return
			}
			stop := make(chan struct{})
			defer close(stop)
			go func() { // a byte now and then, until the server has enough
				for {
					select {
					case <-stop:
						return
					case <-time.After(20 * time.Millisecond):
						io.WriteString(c, " ")
					}
				}
			}()
			c.SetReadDeadline(time.Now().Add(patience))
			r := bufio.NewReader(c)
			response, err := http.ReadResponse(r, nil)
			if err == nil {
				if response.StatusCode != 400 && response.StatusCode != 408 {
					t.Errorf("%s: got status %d, want 400 or 408", name, response.StatusCode)
				}
				io.Copy(io.Discard, response.Body)
				_, err = r.ReadByte()
			}
			if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%s: the connection is still open: %v", name, err)
			}
		})
	}
	clients.Wait()
	do(t, connect(t, s, client.Options{}), 404, protocol.PromiseGet{ID: "a"})
}

// TestUnusedBodies: a request whose body no handler reads is answered, although the body
// never arrives. net/http waits for it first.
func TestUnusedBodies(t *testing.T) {
	t.Parallel()
	s := listen(t, server.Config{Tokens: []string{"s3cret"}, BodyTimeout: 20 * time.Millisecond})
	defer closeAtOnce(t, s)
	const token, length = "Authorization: Bearer s3cret\r\n", "Host: localhost\r\nContent-Length: 1000\r\n\r\n"
	for _, test := range []struct {
		begin  string
		status int
	}{
		{"GET /health HTTP/1.1\r\n", 401},
		{"GET /health HTTP/1.1\r\n" + token, 200},
		{"GET /poll/g/p HTTP/1.1\r\n" + token, 200},
		{"PUT / HTTP/1.1\r\n", 405},
		{"POST / HTTP/1.1\r\nContent-Type: text/html\r\n", 400},
		{"POST / HTTP/1.1\r\nOrigin: https://example.com\r\n", 403},
		{"OPTIONS * HTTP/1.1\r\n", 401},
		{"OPTIONS / HTTP/1.1\r\nOrigin: https://example.com\r\n", 403},
	} {
		if got := raw(t, s, test.begin+length); got != test.status {
			t.Errorf("%q: got status %d, want %d", test.begin, got, test.status)
		}
	}
}

// TestConnections: a connection beyond the limit is closed at once, and accepted when
// there is room again.
func TestConnections(t *testing.T) {
	const most = 10
	s := listen(t, server.Config{ConnectionsMax: most})
	var open []net.Conn
	answered := func() bool {
		c, err := net.Dial("tcp", s.Address())
		if err != nil {
			return false // it was closed before Dial has returned
		}
		open = append(open, c)
		io.WriteString(c, "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
		c.SetReadDeadline(time.Now().Add(patience))
		response, err := http.ReadResponse(bufio.NewReader(c), nil)
		return err == nil && response.StatusCode == 200
	}
	for i := range most {
		if !answered() {
			t.Fatalf("connection %d was refused", i+1)
		}
	}
	if answered() {
		t.Errorf("connection %d was accepted", most+1)
	}
	open[0].Close()
	for deadline := time.Now().Add(patience); !answered(); {
		if time.Now().After(deadline) {
			t.Fatal("there is no room after a connection was closed")
		}
	}
	for _, c := range open {
		c.Close()
	}
}

// held is an engine whose operations on promise "held" wait. It makes the states visible
// that pass too fast otherwise.
type held struct {
	protocol.Backend
	entered chan struct{}
	release chan struct{}
	once    sync.Once
}

func hold(b protocol.Backend) *held {
	return &held{Backend: b, entered: make(chan struct{}, 100), release: make(chan struct{})}
}

func (h *held) free() { h.once.Do(func() { close(h.release) }) }

func (h *held) Do(ctx context.Context, op protocol.Operation) (protocol.Result, error) {
	if c, ok := op.(protocol.PromiseCreate); ok && strings.HasPrefix(c.ID, "held") {
		h.entered <- struct{}{}
		<-h.release
	}
	return h.Backend.Do(ctx, op)
}

// TestRequests: a request beyond the limit of requests is refused with status 429.
func TestRequests(t *testing.T) {
	const most = 3
	h := hold(openEngine(t, engine.Config{}))
	s := listen(t, server.Config{Backend: h, RequestsMax: most})
	defer h.free()
	c := connect(t, s, client.Options{})
	var wait sync.WaitGroup
	for i := range most {
		wait.Go(func() {
			res, err := c.Do(t.Context(), protocol.PromiseCreate{ID: fmt.Sprintf("held%d", i), TimeoutAt: later()})
			if err != nil || res.Status != 200 {
				t.Errorf("got status %d, %v", res.Status, err)
			}
		})
	}
	for range most {
		<-h.entered
	}
	response, body := exchange(t, "POST", s.URL(), envelope("promise.get", "1", "", `{"id":"a"}`), nil)
	if status, _ := checkEnvelope(t, response, body, "promise.get", "1"); status != 429 || response.Header.Get("Retry-After") == "" {
		t.Errorf("got %d, Retry-After %q", status, response.Header.Get("Retry-After"))
	}
	if got := status(t, s, http.DefaultTransport, "GET", "/health", "", nil); got != 200 {
		t.Errorf("/health: got status %d", got)
	}
	h.free()
	wait.Wait()
	do(t, c, 404, protocol.PromiseGet{ID: "a"})
}

// TestBodiesInTurns: the memory for a body is free again when the request was answered.
func TestBodiesInTurns(t *testing.T) {
	s := listen(t, server.Config{BodyMax: 1 << 20, BodiesMax: 3 << 20})
	body := envelope("promise.get", "1", "", `{"id":"a","x":"`+strings.Repeat("x", 900_000)+`"}`)
	for i := range 20 {
		if got := status(t, s, http.DefaultTransport, "POST", "/", body, nil); got != 404 {
			t.Fatalf("request %d: got status %d, want 404", i+1, got)
		}
	}
}

// TestBodies: the memory for bodies that arrive at the same time is limited.
func TestBodies(t *testing.T) {
	t.Parallel()
	s := listen(t, server.Config{BodyMax: 1 << 20, BodiesMax: 3 << 20})
	defer closeAtOnce(t, s)
	var open []net.Conn
	defer func() {
		for _, c := range open {
			c.Close()
		}
	}()
	const most = 50
	statuses := make(chan int, most)
	for i := range most {
		c, err := net.Dial("tcp", s.Address())
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
		go func() {
			response, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err == nil { // otherwise the test has closed the connection
				statuses <- response.StatusCode
			}
		}()
		const part = 900_000 // all but the end of a body
		io.WriteString(c, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n"+strings.Repeat(" ", part))
		until(t, "a body is in memory or refused", func() bool { return len(statuses) > 0 || s.BodyBytes() >= int64(len(open))*part })
		if len(statuses) > 0 {
			if got := <-statuses; got != 429 || i < 2 {
				t.Errorf("request %d: got status %d, want 429 after two or three requests", i+1, got)
			}
			return
		}
	}
	t.Error("50 MB are being read, the limit is 3 MiB")
}

// TestResponses: the memory for responses that clients do not read is limited.
func TestResponses(t *testing.T) {
	t.Parallel() // the kernel sends little to clients that do not read
	s := listen(t, server.Config{ResponsesMax: 20 << 20})
	c := connect(t, s, client.Options{})
	data := strings.Repeat("x", 4_000_000)
	do(t, c, 200, protocol.PromiseCreate{ID: "large", TimeoutAt: later(), Param: protocol.Value{Data: &data}})
	do(t, c, 200, protocol.PromiseSettle{ID: "large", State: protocol.Resolved, Value: protocol.Value{Data: &data}})
	var open []net.Conn
	defer func() {
		for _, c := range open {
			c.Close()
		}
	}()
	text := envelope("promise.get", "1", "", `{"id":"large"}`)
	status := func(op protocol.Operation) int {
		res, err := c.Do(t.Context(), op)
		if err != nil {
			t.Fatal(err)
		}
		return res.Status
	}
	until(t, "a request is refused", func() bool {
		if len(open) == 50 {
			t.Fatal("400 MB of responses wait, the limit is 20 MiB")
		}
		c, err := net.Dial("tcp", s.Address())
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
		c.(*net.TCPConn).SetReadBuffer(4096)
		fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
		return status(protocol.PromiseGet{ID: "a"}) == 429
	})
	created := status(protocol.PromiseCreate{ID: "b", TimeoutAt: later()})
	for _, c := range open {
		c.Close()
	}
	until(t, "there is memory again", func() bool { return status(protocol.PromiseGet{ID: "a"}) == 404 })
	switch created {
	case 429: // the request had no effect
		do(t, c, 404, protocol.PromiseGet{ID: "b"})
	case 200: // a response that was not read for long enough has made room
		do(t, c, 200, protocol.PromiseGet{ID: "b"})
	default:
		t.Errorf("a create got status %d", created)
	}
}

// gathering is a backend whose creates wait until a number of them has come.
type gathering struct {
	protocol.Backend
	missing *sync.WaitGroup
}

func (g gathering) Do(ctx context.Context, op protocol.Operation) (protocol.Result, error) {
	if c, ok := op.(protocol.PromiseCreate); ok && c.Param.Data == nil {
		g.missing.Done()
		g.missing.Wait()
	}
	return g.Backend.Do(ctx, op)
}

// TestResponsesAtOnce: the limit also holds for operations that were admitted at the same time.
func TestResponsesAtOnce(t *testing.T) {
	t.Parallel()
	const clients = 50
	missing := new(sync.WaitGroup)
	missing.Add(clients)
	s := listen(t, server.Config{ResponsesMax: 40 << 20, Backend: gathering{openEngine(t, engine.Config{}), missing}})
	s.KeepSlow()
	data := strings.Repeat("x", 4_000_000)
	large, c := protocol.Value{Data: &data}, connect(t, s, client.Options{})
	do(t, c, 200, protocol.PromiseCreate{ID: "large", TimeoutAt: later(), Param: large})
	// With both values a response is larger than the buffers of a socket. A response that fits into them would be sent, and count no
	// longer.
	do(t, c, 200, protocol.PromiseSettle{ID: "large", State: protocol.Resolved, Value: large})
	text := envelope("promise.create", "1", "", fmt.Sprintf(`{"id":"large","timeoutAt":%d,"param":{},"tags":{}}`, later()))
	var open []net.Conn
	for range clients {
		c, err := net.Dial("tcp", s.Address())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		open = append(open, c)
		c.(*net.TCPConn).SetReadBuffer(4096)
		fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
	}
	statuses := map[string]int{}
	for _, c := range open { // the bodies are not read
		line, err := bufio.NewReaderSize(c, 16).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		statuses[line[:12]]++
	}
	if n := statuses["HTTP/1.1 200"]; n < 5 || n > 6 || n+statuses["HTTP/1.1 429"] != clients {
		t.Errorf("the statuses are %v; responses of 8 MB are admitted until there are 40 MiB", statuses)
	}
}

// panics is an engine with a promise on which operations panic.
type panics struct{ protocol.Backend }

func (p panics) Do(ctx context.Context, op protocol.Operation) (protocol.Result, error) {
	if op == (protocol.PromiseGet{ID: "panic"}) {
		panic("an error in the program")
	}
	return p.Backend.Do(ctx, op)
}

// TestPanics: a request that panics is answered with status 500, and the server continues.
func TestPanics(t *testing.T) {
	s := listen(t, server.Config{Backend: panics{openEngine(t, engine.Config{})}, RequestsMax: 2, MetricsListen: "127.0.0.1:0"})
	for range 5 { // more often than there are places for requests
		response, body := exchange(t, "POST", s.URL(), envelope("promise.get", "1", "", `{"id":"panic"}`), nil)
		if response.StatusCode != 500 || !strings.Contains(body, "the server failed") {
			t.Errorf("got status %d: %s", response.StatusCode, body)
		}
	}
	do(t, connect(t, s, client.Options{}), 404, protocol.PromiseGet{ID: "a"})
	if text := scrape(t, s); !strings.Contains(text, "topogen_durable_request_panics_total 5\n") {
		t.Error("the panics are not counted")
	}
}

// TestFailures: an error of the backend is status 500, because the outcome is not known,
// and a refusal keeps its status.
func TestFailures(t *testing.T) {
	e := openEngine(t, engine.Config{})
	s := listen(t, server.Config{Backend: e})
	c := connect(t, s, client.Options{})
	if got := status(t, s, http.DefaultTransport, "GET", "/ready", "", nil); got != 200 {
		t.Errorf("/ready: got status %d, want 200", got)
	}
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	do(t, c, 503, protocol.PromiseGet{ID: "a"})
	do(t, c, 503, protocol.PromiseCreate{ID: "a", TimeoutAt: later()})
	for path, want := range map[string]int{"/ready": 503, "/health": 200, "/poll/g/p": 503} {
		if got := status(t, s, http.DefaultTransport, "GET", path, "", nil); got != want {
			t.Errorf("%s: got status %d, want %d", path, got, want)
		}
	}
	failing := listen(t, server.Config{Backend: unknown{e}})
	do(t, connect(t, failing, client.Options{}), 500, protocol.PromiseGet{ID: "a"})
}

// unknown is a backend whose outcomes are not known.
type unknown struct{ protocol.Backend }

func (unknown) Do(context.Context, protocol.Operation) (protocol.Result, error) {
	return protocol.Result{}, engine.ErrUnknown
}
