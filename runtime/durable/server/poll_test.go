package server_test

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/durable/client"
	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/server"
)

// A tap is a stream that a test reads itself.
type tap struct {
	net.Conn
	r      *bufio.Reader
	status int
	header http.Header
}

// open begins a stream and reads the head of the response.
func open(t testing.TB, s *server.Server, group, pid string) *tap {
	t.Helper()
	c, err := net.Dial("tcp", s.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	fmt.Fprintf(c, "GET /poll/%s/%s HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n", url.PathEscape(group), url.PathEscape(pid))
	c.SetReadDeadline(time.Now().Add(patience))
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &tap{Conn: c, r: bufio.NewReader(response.Body), status: response.StatusCode, header: response.Header}
	if p.status == 200 {
		if line := p.line(t) + p.line(t); line != ": connected" {
			t.Fatalf("the stream begins with %q", line)
		}
	}
	return p
}

func (p *tap) line(t testing.TB) string {
	t.Helper()
	line, err := p.r.ReadString('\n')
	if err != nil {
		t.Fatalf("%v after %q", err, line)
	}
	return strings.TrimSuffix(line, "\n")
}

// TestFrames checks the bytes of a stream.
func TestFrames(t *testing.T) {
	s := listen(t, server.Config{KeepAlive: time.Hour})
	c := connect(t, s, client.Options{})
	p := open(t, s, "g", "p")
	want := http.Header{"Content-Type": {"text/event-stream"}, "Cache-Control": {"no-store"}}
	for key := range want {
		if !slices.Equal(p.header[key], want[key]) {
			t.Errorf("%s is %q, want %q", key, p.header[key], want[key])
		}
	}
	do(t, c, 200, targeted("a\n\r\u2028b", "poll://any@g"))
	do(t, c, 200, targeted("b", "poll://uni@g/p"))
	for _, want := range []string{
		`data: {"kind":"execute","head":{},"data":{"task":{"id":"a\n\r` + "\u2028" + `b","version":0}}}`, "",
		`data: {"kind":"execute","head":{},"data":{"task":{"id":"b","version":0}}}`, "",
	} {
		if got := p.line(t); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	do(t, c, 200, protocol.RegisterListener{Awaited: "b", Address: "poll://any@g/p"})
	do(t, c, 200, protocol.PromiseSettle{ID: "b", State: protocol.RejectedCancel})
	got := p.line(t)
	if !strings.HasPrefix(got, `data: {"kind":"unblock","head":{},"data":{"promise":{"id":"b","state":"rejected_canceled","param":{},"value":{},"tags":{`) || p.line(t) != "" {
		t.Errorf("got %q", got)
	}
}

// TestKeepAlive: comments keep a stream open, for longer than the timeouts of a request.
func TestKeepAlive(t *testing.T) {
	t.Parallel()
	s := listen(t, server.Config{KeepAlive: 5 * time.Millisecond, HeaderTimeout: 100 * time.Millisecond, BodyTimeout: 100 * time.Millisecond, WriteTimeout: 100 * time.Millisecond})
	p := open(t, s, "g", "p")
	for range 50 {
		if got := p.line(t) + p.line(t); got != ": keep-alive" {
			t.Errorf("got %q", got)
		}
	}
}

// TestNames: the names in the path are decoded, and bounded.
func TestNames(t *testing.T) {
	s := listen(t, server.Config{})
	c := connect(t, s, client.Options{})
	const group, pid = "gr ü%?#&p", "a/b c%2F?x=1#é"
	p := open(t, s, group, pid)
	do(t, c, 200, targeted("a", "poll://uni@"+group+"/"+pid))
	if got := p.line(t); !strings.Contains(got, `"id":"a"`) {
		t.Errorf("got %q", got)
	}
	worker, err := c.Connect(group, pid)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.r.ReadString('\x00'); !errors.Is(err, io.EOF) { // the new stream ends the former one
		t.Fatal(err)
	}
	do(t, c, 200, targeted("b", "poll://uni@"+group+"/"+pid))
	m := receive(t, worker)
	if m.Execute != nil && m.Execute.ID == "a" { // the server had not confirmed it when the stream was replaced
		m = receive(t, worker)
	}
	if m.Execute == nil || m.Execute.ID != "b" {
		t.Errorf("got %+v", m)
	}
	for _, names := range [][2]string{{"g", strings.Repeat("p", 2049)}, {strings.Repeat("g", 2049), "p"}, {"g", "\x00"}, {"g", "\xff"}, {"a/b", "p"}} {
		if p := open(t, s, names[0], names[1]); p.status != 400 {
			t.Errorf("%.10q: got status %d, want 400", names, p.status)
		}
	}
	for _, path := range []string{"g", "g/", "g/p/q", "g/p/%20%20"} {
		r, err := http.Get(s.URL() + "/poll/" + path)
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if r.StatusCode == 200 {
			t.Errorf("%s: got a stream", path)
		}
	}
}

// TestCapacity: a connection beyond the limit of the engine is refused with
// status 503, and accepted when there is room again.
func TestCapacity(t *testing.T) {
	limit := speed.Pick(t, 100, 0, 0) // 0: the default
	s := listen(t, server.Config{Backend: openEngine(t, engine.Config{ConnectionsMax: limit})})
	taps := make([]*tap, cmp.Or(limit, engine.ConnectionsMaxDefault))
	for i := range taps {
		if taps[i] = open(t, s, "g", fmt.Sprint(i)); taps[i].status != 200 {
			t.Fatalf("connection %d: got status %d", i+1, taps[i].status)
		}
	}
	p := open(t, s, "g", "one more")
	if p.status != 503 || p.header.Get("Retry-After") == "" || p.header.Get("Content-Type") != "application/json" {
		t.Errorf("connection %d: got status %d and %v", len(taps)+1, p.status, p.header)
	}
	c := connect(t, s, client.Options{}) // other requests are answered
	do(t, c, 404, protocol.PromiseGet{ID: "a"})
	taps[0].Close()
	for deadline := time.Now().Add(patience); open(t, s, "g", "one more").status != 200; {
		if time.Now().After(deadline) {
			t.Fatal("there is no room after a connection was closed")
		}
	}
}

// TestBroken: when a worker dies, the messages for its group go to others, and it is not
// counted any more.
func TestBroken(t *testing.T) {
	e := openEngine(t, engine.Config{})
	s := listen(t, server.Config{Backend: e})
	c := connect(t, s, client.Options{})
	dead := open(t, s, "g", "dead")
	dead.Conn.(*net.TCPConn).SetLinger(0) // a reset, as if the process was killed
	dead.Close()
	until(t, "the dead connection is noticed", func() bool { return e.Stats().Connections == 0 })
	worker, err := c.Connect("g", "alive")
	if err != nil {
		t.Fatal(err)
	}
	do(t, c, 200, targeted("a", "poll://any@g/dead"))
	if m := receive(t, worker); m.Execute == nil || m.Execute.ID != "a" {
		t.Errorf("got %+v", m)
	}
}

// until waits for a condition.
func until(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it does not happen that %s", what)
		}
	}
}

// TestSlowReader: a worker that does not read is disconnected, and others receive their
// messages in the meantime. Its successor receives the messages that the kernel has not
// taken for it, also the message that was cut off, so that none is lost.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	e := openEngine(t, engine.Config{})
	s := listen(t, server.Config{Backend: e, WriteTimeout: 300 * time.Millisecond})
	c := connect(t, s, client.Options{})
	slow := open(t, s, "slow", "p")
	slow.Conn.(*net.TCPConn).SetReadBuffer(64 << 10)
	other, err := c.Connect("other", "p")
	if err != nil {
		t.Fatal(err)
	}
	data := strings.Repeat("x", 64<<10) // large results fill the buffers of the kernel
	const promises = 24
	for i := range promises {
		id := fmt.Sprint("p", i)
		do(t, c, 200, protocol.PromiseCreate{ID: id, TimeoutAt: later(), Tags: map[string]string{protocol.TagExternal: "true"}})
		do(t, c, 200, protocol.RegisterListener{Awaited: id, Address: "poll://any@slow"})
		do(t, c, 200, protocol.PromiseSettle{ID: id, State: protocol.Resolved, Value: protocol.Value{Data: &data}})
	}
	do(t, c, 200, targeted("task", "poll://any@other"))
	if m := receive(t, other); m.Execute == nil {
		t.Errorf("got %+v", m)
	}
	until(t, "the slow worker is disconnected", func() bool { return e.Stats().Connections == 1 })
	got := map[string]bool{}
	for { // what the kernel has taken can still be read
		line, err := slow.r.ReadString('\n')
		if err != nil {
			break
		}
		if text, ok := strings.CutPrefix(line, "data: "); ok {
			m, err := protocol.DecodeMessage([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			got[m.Unblock.ID] = true
		}
	}
	if len(got) == promises {
		t.Fatal("the kernel has taken all messages: the test needs more of them")
	}
	worker, err := c.Connect("slow", "successor")
	if err != nil {
		t.Fatal(err)
	}
	for len(got) < promises {
		got[receive(t, worker).Unblock.ID] = true
	}
}

// TestReconnect: a process that connects again gets the messages, and its former stream
// ends.
func TestReconnect(t *testing.T) {
	s := listen(t, server.Config{KeepAlive: time.Hour})
	c := connect(t, s, client.Options{})
	before := open(t, s, "g", "p")
	after := open(t, s, "g", "p")
	if _, err := before.r.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("the former stream: %v, want its end", err)
	}
	do(t, c, 200, targeted("a", "poll://uni@g/p"))
	if got := after.line(t); !strings.Contains(got, `"id":"a"`) {
		t.Errorf("got %q", got)
	}
}

// TestPush: a listener with an http address gets the message as a POST.
func TestPush(t *testing.T) {
	received := make(chan protocol.Message, 1)
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		m, err := protocol.DecodeMessage(text)
		if err != nil || r.Method != "POST" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s: %v", r.Method, text, err)
		}
		received <- m
	}))
	defer target.Close()
	s := listen(t, server.Config{})
	c := connect(t, s, client.Options{})
	do(t, c, 200, targeted("a", target.URL+"/messages"))
	select {
	case m := <-received:
		if m.Execute == nil || m.Execute.ID != "a" {
			t.Errorf("got %+v", m)
		}
	case <-time.After(patience):
		t.Error("no message was pushed")
	}
}
