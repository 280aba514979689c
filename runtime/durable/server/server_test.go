package server_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/durable/client"
	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/server"
	"github.com/topogen/topogen/runtime/durable/store"
)

// patience is how long a test waits for something that should happen at once.
const patience = 30 * time.Second

// openEngine opens an engine on a store in memory, and closes it after the test.
func openEngine(t testing.TB, config engine.Config) *engine.Engine {
	t.Helper()
	if config.Store == nil {
		config.Store = store.NewMemory()
	}
	config.Logger = slog.New(slog.DiscardHandler)
	e, err := engine.Open(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := e.Close(ctx); err != nil {
			t.Errorf("close the engine: %v", err)
		}
	})
	return e
}

// listen starts a server on a free port of the loopback address, and closes it after the
// test, before its engine.
func listen(t testing.TB, config server.Config) *server.Server {
	t.Helper()
	if config.Backend == nil {
		config.Backend = openEngine(t, engine.Config{Debug: config.Debug})
	}
	if config.Listen == "" {
		config.Listen = "127.0.0.1:0"
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	s, err := server.Listen(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Errorf("close the server: %v", err)
		}
	})
	return s
}

// closeAtOnce closes a server without waiting for its connections. After net/http has refused a
// request whose rest may still arrive, it keeps the connection open for half a second.
func closeAtOnce(t testing.TB, s *server.Server) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Close(ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("close the server: %v", err)
	}
}

func connect(t testing.TB, s *server.Server, options client.Options) *client.Client {
	t.Helper()
	c, err := client.New(s.URL(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// do carries out an operation and checks the status.
func do(t testing.TB, b protocol.Backend, status int, op protocol.Operation) protocol.Result {
	t.Helper()
	res, err := b.Do(t.Context(), op)
	if err != nil {
		t.Fatalf("%s: %v", op.Kind(), err)
	}
	if res.Status != status {
		t.Fatalf("%s: got status %d (%s), want %d", op.Kind(), res.Status, res.Error, status)
	}
	return res
}

// exchange sends a request and returns the answer with its body.
func exchange(t testing.TB, method, url, body string, header http.Header) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	for key, values := range header {
		if key == "Host" {
			r.Host = values[0]
		}
		r.Header[key] = values
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(text)
}

// later is a deadline that no test reaches.
func later() int64 { return time.Now().Add(time.Hour).UnixMilli() }

func targeted(id, address string) protocol.PromiseCreate {
	return protocol.PromiseCreate{ID: id, TimeoutAt: later(), Tags: map[string]string{protocol.TagTarget: address}}
}

// receive returns the next message of a connection.
func receive(t testing.TB, c protocol.Connection) protocol.Message {
	t.Helper()
	select {
	case m, ok := <-c.Messages():
		if !ok {
			t.Fatal("the connection has ended")
		}
		return m
	case <-time.After(patience):
		t.Fatal("no message has arrived")
	}
	panic("unreachable")
}

// TestCycle carries a task from its creation to the message that its promise is settled,
// over HTTP.
func TestCycle(t *testing.T) {
	s := listen(t, server.Config{})
	c := connect(t, s, client.Options{})
	worker, err := c.Connect("group", "worker")
	if err != nil {
		t.Fatal(err)
	}
	listener, err := c.Connect("listeners", "one")
	if err != nil {
		t.Fatal(err)
	}
	do(t, c, 200, targeted("job", "poll://any@group"))
	do(t, c, 200, protocol.RegisterListener{Awaited: "job", Address: "poll://uni@listeners/one"})
	m := receive(t, worker)
	if m.Execute == nil || m.Execute.ID != "job" {
		t.Fatalf("got %+v, want execute job", m)
	}
	res := do(t, c, 200, protocol.TaskAcquire{ID: "job", Version: m.Execute.Version, PID: "worker", TTL: 60_000})
	data := "aGk="
	do(t, c, 200, protocol.TaskFulfill{ID: "job", Version: res.Task.Version,
		Action: protocol.PromiseSettle{ID: "job", State: protocol.Resolved, Value: protocol.Value{Data: &data}}})
	m = receive(t, listener)
	if m.Unblock == nil || m.Unblock.ID != "job" || m.Unblock.State != protocol.Resolved || *m.Unblock.Value.Data != data {
		t.Fatalf("got %+v, want unblock of job", m)
	}
}
