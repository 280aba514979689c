package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/internal/test/allocated"
	"github.com/topogen/topogen/runtime/durable/protocol"
)

// patience is how long a test waits for something that should happen at once.
const patience = 30 * time.Second

// serve answers each request with a function. The real server is used in the tests of
// package server; this one does what that one never does.
func serve(t *testing.T, options Options, handle http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewServer(handle)
	c, err := New(s.URL, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		s.Close()
	})
	return c
}

// respond answers a request with a result.
func respond(w http.ResponseWriter, r *http.Request, res protocol.Result) {
	text, _ := io.ReadAll(r.Body)
	request, err := protocol.DecodeRequest(text)
	if err != nil {
		panic(err)
	}
	w.WriteHeader(res.Status)
	w.Write(protocol.AppendResponse(nil, &request, &res))
}

func TestRequest(t *testing.T) {
	var got *http.Request
	var text []byte
	c := serve(t, Options{Token: "s3cret"}, func(w http.ResponseWriter, r *http.Request) {
		got = r
		text, _ = io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(text)))
		respond(w, r, protocol.Result{Status: 404, Error: "no"})
	})
	res, err := c.Do(WithTime(t.Context(), 5), protocol.PromiseCreate{ID: "a", TimeoutAt: 1, Origin: "o"})
	if err != nil || res.Status != 404 || res.Error != "no" {
		t.Fatalf("%+v, %v", res, err)
	}
	if got.Method != "POST" || got.URL.Path != "/" || got.Header.Get("Content-Type") != "application/json" || got.Header.Get("Authorization") != "Bearer s3cret" {
		t.Errorf("got %s %s %v", got.Method, got.URL, got.Header)
	}
	r, err := protocol.DecodeRequest(text)
	if err != nil || r.Head.CorrID == "" || *r.Head.DebugTime != 5 || r.Op.(protocol.PromiseCreate).Origin != "o" {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestCorrIDs: each request has its own.
func TestCorrIDs(t *testing.T) {
	seen := map[string]bool{}
	c := serve(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		request, _ := protocol.DecodeRequest(text)
		if seen[request.Head.CorrID] {
			t.Errorf("corrId %s is used twice", request.Head.CorrID)
		}
		seen[request.Head.CorrID] = true
		w.Write(protocol.AppendResponse(nil, &request, &protocol.Result{Status: 200}))
	})
	for range 10 {
		if _, err := c.Do(t.Context(), protocol.TaskHalt{ID: "a"}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestURLs: the server may be below a path.
func TestURLs(t *testing.T) {
	for _, test := range []struct {
		url string
		ok  bool
	}{
		{"http://127.0.0.1:8001", true}, {"https://example.com/durable/", true}, {"http://[::1]:8001/", true},
		{"", false}, {"127.0.0.1:8001", false}, {"ftp://a", false}, {"http://", false},
		{"http://user:password@a", false}, {"http://a?b", false}, {"http://a#b", false}, {"http://a b", false},
		{"http://a?password", false}, {"http://a#password", false}, {"ftp://user:password@a", false}, {"http://user:password@a b", false}, {"http://user:password@a:port", false},
	} {
		c, err := New(test.url, Options{})
		if (err == nil) != test.ok {
			t.Errorf("%q: %v", test.url, err)
		}
		if err != nil && strings.Contains(err.Error(), "password") {
			t.Errorf("the error has the password: %v", err)
		}
		if c != nil {
			c.Close()
		}
	}
	if _, err := New("http://a", Options{Timeout: -1}); err == nil {
		t.Error("a negative timeout was accepted")
	}
	for _, base := range []string{"http://a/b", "http://a/b/"} {
		c, _ := New(base, Options{})
		if got := c.pollURL("g/ü ", "p?%2F").String(); got != "http://a/b/poll/g%2F%C3%BC%20/p%3F%252F" {
			t.Errorf("got %s", got)
		}
	}
}

// TestRefusedBeforeSending: an operation that no server accepts is not sent.
func TestRefusedBeforeSending(t *testing.T) {
	c := serve(t, Options{}, func(http.ResponseWriter, *http.Request) { t.Error("it was sent") })
	res, err := c.Do(t.Context(), protocol.PromiseGet{ID: "\xff"})
	if err != nil || res.Status != 400 || res.Error != "id is not valid UTF-8" {
		t.Errorf("%+v, %v", res, err)
	}
}

// TestBadServers: a server that does not follow the protocol leads to an error, within the
// limits.
func TestBadServers(t *testing.T) {
	t.Parallel() // it waits for a timeout
	op := protocol.PromiseGet{ID: "a"}
	for _, test := range []struct {
		name    string
		handle  http.HandlerFunc
		problem string
	}{
		{"HTML", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(502)
			io.WriteString(w, "<html>bad gateway")
		}, "HTTP status 502: the response is not JSON"},
		{"another status", func(w http.ResponseWriter, r *http.Request) {
			text, _ := io.ReadAll(r.Body)
			request, _ := protocol.DecodeRequest(text)
			w.WriteHeader(200)
			w.Write(protocol.AppendResponse(nil, &request, &protocol.Result{Status: 404}))
		}, "HTTP status 200 does not match status 404"},
		{"another request", func(w http.ResponseWriter, r *http.Request) {
			request := protocol.Request{Kind: "promise.get", Head: protocol.Head{CorrID: "other"}}
			w.Write(protocol.AppendResponse(nil, &request, &protocol.Result{Status: 200}))
		}, "head.corrId is not the corrId of the request"},
		{"a long response", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, strings.Repeat(" ", 2000)) }, "longer than 1000 bytes"},
		{"an endless response", func(w http.ResponseWriter, r *http.Request) {
			for {
				if _, err := io.WriteString(w, strings.Repeat(" ", 1000)); err != nil {
					return
				}
			}
		}, "longer than 1000 bytes"},
		{"a redirect", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/elsewhere" {
				t.Error("the redirect was followed")
			}
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, "HTTP status 307"},
		{"a compressed response", func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Accept-Encoding") != "" {
				t.Errorf("the client accepts %q", r.Header.Get("Accept-Encoding"))
			}
			w.Header().Set("Content-Encoding", "gzip")
			io.WriteString(w, "\x1f\x8b")
		}, "HTTP status 200: the response is not valid UTF-8"},
		{"a response that ends early", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "500")
			io.WriteString(w, "{")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, "unexpected EOF"},
		{"no response", func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body) // net/http notices that the client is gone only after that
			<-r.Context().Done()
		}, "context deadline exceeded"},
		{"a long header", func(w http.ResponseWriter, r *http.Request) { w.Header().Set("X", strings.Repeat("x", 1<<20)) }, "server response headers exceeded"},
	} {
		t.Run(test.name, func(t *testing.T) {
			timeout := time.Minute
			if test.problem == context.DeadlineExceeded.Error() {
				timeout = 200 * time.Millisecond
			}
			c := serve(t, Options{ResponseMax: 1000, Timeout: timeout}, test.handle)
			res, err := c.Do(t.Context(), op)
			if err == nil || !strings.Contains(err.Error(), test.problem) {
				t.Errorf("got %+v, %v, want %s", res, err, test.problem)
			}
		})
	}
}

// TestEnds: the context of the caller ends an operation.
func TestEnds(t *testing.T) {
	entered := make(chan struct{})
	c := serve(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		close(entered)
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-entered
		cancel()
	}()
	if _, err := c.Do(ctx, protocol.PromiseGet{ID: "a"}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// A stream is a server whose streams a test writes.
type stream struct {
	t        *testing.T
	events   chan Event
	statuses chan int           // the server answers the next request for a stream with it
	texts    chan string        // the server writes them to the last stream; "" ends it
	accepted chan chan string   // the texts of a new stream
	waits    chan time.Duration // the pauses of the client
	resume   chan struct{}      // a value ends a pause
}

func newStream(t *testing.T, options Options) (*stream, *Client, protocol.Connection) {
	s := &stream{
		t: t, events: make(chan Event, 10), statuses: make(chan int), accepted: make(chan chan string),
		waits: make(chan time.Duration), resume: make(chan struct{}),
	}
	options.Events = func(e Event) { s.events <- e }
	c := serve(t, options, s.handle)
	connection, err := c.connect("g", "p", func(ctx context.Context, d time.Duration) {
		select {
		case s.waits <- d:
		case <-ctx.Done():
		}
		select {
		case <-s.resume:
		case <-ctx.Done():
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, c, connection
}

func (s *stream) handle(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Accept") != "text/event-stream" || r.URL.Path != "/poll/g/p" {
		s.t.Errorf("got %s with Accept %q", r.URL, r.Header.Get("Accept"))
	}
	select {
	case status := <-s.statuses:
		w.WriteHeader(status)
		if status != 200 {
			return
		}
	case <-r.Context().Done():
		return
	}
	w.(http.Flusher).Flush()
	texts := make(chan string)
	s.accepted <- texts
	for {
		select {
		case text := <-texts:
			if text == "" {
				return
			}
			io.WriteString(w, text)
			w.(http.Flusher).Flush()
		case <-r.Context().Done():
			return
		}
	}
}

func next[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatalf("there is no %s", what)
		panic("unreachable")
	}
}

// open accepts a stream and writes to it.
func (s *stream) open(text string) {
	s.t.Helper()
	s.statuses <- 200
	s.texts = <-s.accepted
	s.texts <- text
	if e := next(s.t, "event", s.events); !e.Connected || e.Group != "g" || e.PID != "p" {
		s.t.Errorf("got %+v, want connected", e)
	}
}

const execute = `{"kind":"execute","head":{},"data":{"task":{"id":"%s","version":1}}}`

func frame(id string) string { return "data: " + fmt.Sprintf(execute, id) + "\n\n" }

func (s *stream) receives(connection protocol.Connection, id string) {
	s.t.Helper()
	m := next(s.t, "message", connection.Messages())
	if m.Execute == nil || m.Execute.ID != id {
		s.t.Errorf("got %+v, want execute %s", m, id)
	}
}

// TestStream: messages arrive, whatever else is on the stream.
func TestStream(t *testing.T) {
	s, _, connection := newStream(t, Options{})
	s.open(": connected\n\n")
	s.texts <- frame("a")
	s.receives(connection, "a")
	s.texts <- "\n\n: comment\nevent: message\nid: 7\nretry: 5\n" + frame("b")
	s.receives(connection, "b")
	s.texts <- strings.ReplaceAll(frame("c"), "\n", "\r\n")
	s.receives(connection, "c")
	s.texts <- "data:{\"kind\":\"execute\",\ndata: \"head\":{},\ndata:\"data\":{\"task\":{\"id\":\"d\",\"version\":1}}}\n\n"
	s.receives(connection, "d")
	text := frame(strings.Repeat("e", 100_000)) // longer than the buffer of the reader
	s.texts <- text[:50_000]
	s.texts <- text[50_000:]
	s.receives(connection, strings.Repeat("e", 100_000))
	s.texts <- frame("f") + frame("g")
	s.receives(connection, "f")
	s.receives(connection, "g")
}

// TestReconnect: the client connects again after growing pauses, which begin again after
// it was connected.
func TestReconnect(t *testing.T) {
	s, _, connection := newStream(t, Options{})
	for range 2 {
		s.open(frame("a"))
		s.receives(connection, "a")
		s.texts <- ""
		if e := next(t, "event", s.events); e.Connected || !errors.Is(e.Err, io.ErrUnexpectedEOF) {
			t.Errorf("got %+v, want disconnected", e)
		}
		if d := next(t, "pause", s.waits); d != time.Second {
			t.Errorf("the first pause takes %v", d)
		}
		s.resume <- struct{}{}
	}
	for _, want := range []time.Duration{2, 4, 8, 16, 30, 30} {
		s.statuses <- 503
		if e := next(t, "event", s.events); e.Connected || !strings.Contains(e.Err.Error(), "503") {
			t.Errorf("got %+v, want refused", e)
		}
		if d := next(t, "pause", s.waits); d != want*time.Second {
			t.Errorf("a pause takes %v, want %v", d, want*time.Second)
		}
		s.resume <- struct{}{}
	}
	s.open(frame("b"))
	s.receives(connection, "b")
	s.texts <- ""
	if d := next(t, "pause", s.waits); d != time.Second {
		t.Errorf("the first pause takes %v", d)
	}
}

// TestBadStreams: a stream with something else than messages is closed, within the limits.
func TestBadStreams(t *testing.T) {
	for _, test := range []struct{ name, text, problem string }{
		{"not a message", "data: {}\n\n", "kind is missing"},
		{"not JSON", "data: hello\n\n", "the message is not JSON"},
		{"a long line", "data: " + strings.Repeat("x", 20_000), "longer than 2000 bytes"},
		{"many lines", strings.Repeat("data: xxxxxxxx\n", 300), "longer than 2000 bytes"},
		{"a long comment", ": " + strings.Repeat("x", 20_000), "longer than 2000 bytes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, _, connection := newStream(t, Options{ResponseMax: 2000})
			s.open(frame("a") + test.text)
			s.receives(connection, "a")
			if e := next(t, "event", s.events); e.Connected || e.Err == nil || !strings.Contains(e.Err.Error(), test.problem) {
				t.Errorf("got %+v, want %s", e, test.problem)
			}
			next(t, "pause", s.waits)
			s.resume <- struct{}{}
			s.open(frame("b"))
			s.receives(connection, "b")
		})
	}
}

// roundTrip is a transport without a network, for virtual time.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestSilence: a stream without a byte is broken, but comments keep it, and a worker may
// take its time.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := make(chan Event, 10)
		c, err := New("http://a", Options{Events: func(e Event) { events <- e }})
		if err != nil {
			t.Fatal(err)
		}
		body, w := io.Pipe()
		c.transport = roundTrip(func(r *http.Request) (*http.Response, error) {
			context.AfterFunc(r.Context(), func() { body.CloseWithError(r.Context().Err()) })
			return &http.Response{StatusCode: 200, Body: body}, nil
		})
		connection, err := c.Connect("g", "p")
		if err != nil {
			t.Fatal(err)
		}
		if e := <-events; !e.Connected {
			t.Errorf("got %+v", e)
		}
		for range 10 {
			time.Sleep(SilenceDefault - time.Second)
			io.WriteString(w, ":\n\n")
		}
		io.WriteString(w, frame("a"))
		time.Sleep(2 * SilenceDefault) // the worker is busy
		if m := <-connection.Messages(); m.Execute.ID != "a" {
			t.Errorf("got %+v", m)
		}
		start := time.Now()
		if e := <-events; e.Connected || !errors.Is(e.Err, errSilence) || time.Since(start) != SilenceDefault {
			t.Errorf("after %v: got %+v, want %v", time.Since(start), e, errSilence)
		}
		c.Close()
		for range connection.Messages() {
		}
	})
}

// TestClose: the channel of messages is closed, also while the client connects, waits for
// a stream, or has a message that was not taken.
func TestClose(t *testing.T) {
	ended := func(t *testing.T, connection protocol.Connection) {
		t.Helper()
		for range connection.Messages() {
		}
	}
	t.Run("connected", func(t *testing.T) {
		s, _, connection := newStream(t, Options{})
		s.open(frame("a") + frame("b"))
		connection.Close()
		connection.Close()
		ended(t, connection)
	})
	t.Run("connecting", func(t *testing.T) {
		_, _, connection := newStream(t, Options{})
		connection.Close()
		ended(t, connection)
	})
	t.Run("waiting", func(t *testing.T) {
		s, _, connection := newStream(t, Options{})
		s.open(":\n")
		s.texts <- ""
		next(t, "pause", s.waits)
		connection.Close()
		ended(t, connection)
	})
	t.Run("client", func(t *testing.T) {
		s, c, connection := newStream(t, Options{})
		s.open(":\n")
		c.Close()
		ended(t, connection)
		if _, err := c.Connect("g", "p"); !errors.Is(err, ErrClosed) {
			t.Errorf("got %v", err)
		}
	})
}

func TestConnectNames(t *testing.T) {
	c, err := New("http://127.0.0.1:1", Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, names := range [][2]string{{"", "p"}, {"g", ""}} {
		if _, err := c.Connect(names[0], names[1]); err == nil {
			t.Errorf("%q were accepted", names)
		}
	}
}

// TestRealPause uses the pause that tests replace otherwise.
func TestRealPause(t *testing.T) {
	pause(t.Context(), time.Millisecond)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	pause(ctx, time.Hour)
}

func FuzzReader(f *testing.F) {
	f.Add(frame("a") + ": c\r\n\r\ndata\n\ndata:x")
	f.Fuzz(func(t *testing.T, text string) {
		allocated.Within(t, readerBytes+10*100, func() { // for a stream of any length
			r := newReader(strings.NewReader(text), 100)
			for {
				data, err := r.next()
				if err != nil {
					return
				}
				if len(data) > 100 {
					t.Fatalf("a message has %d bytes", len(data))
				}
			}
		})
	})
}
