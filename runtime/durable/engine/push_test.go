package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/store"
	"github.com/topogen/topogen/runtime/internal/loglimit"
)

// receivers answers requests in place of a network.
type receivers struct {
	mu      sync.Mutex
	answer  func(url string) (status int, wait time.Duration)
	log     []string // "time url message" since the start
	start   time.Time
	running map[string]int // requests by URL, and all under ""
	most    map[string]int
}

func newReceivers(answer func(url string) (int, time.Duration)) *receivers {
	return &receivers{answer: answer, start: time.Now(), running: map[string]int{}, most: map[string]int{}}
}

func (r *receivers) RoundTrip(request *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	m, err := protocol.DecodeMessage(body)
	if err != nil {
		return nil, err
	}
	url := request.URL.String()
	r.mu.Lock()
	r.log = append(r.log, fmt.Sprintf("%v %s %s", time.Since(r.start), url, text(m)))
	status, wait := r.answer(url)
	for _, key := range []string{url, ""} {
		r.running[key]++
		r.most[key] = max(r.most[key], r.running[key])
	}
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.running[url]--
		r.running[""]--
	}()
	select {
	case <-time.After(wait):
	case <-request.Context().Done():
		return nil, request.Context().Err()
	}
	if status == 0 {
		return nil, errors.New("connection refused")
	}
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Request: request,
		Header: http.Header{"Location": {"http://elsewhere/"}}, Body: io.NopCloser(strings.NewReader("")),
	}, nil
}

// take returns the log so far, and empties it.
func (r *receivers) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	log := r.log
	r.log = nil
	return log
}

func (r *receivers) set(answer func(url string) (int, time.Duration)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

// peak returns the largest number of requests at a time.
func (r *receivers) peak(url string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.most[url]
}

func always(status int) func(string) (int, time.Duration) {
	return func(string) (int, time.Duration) { return status, 0 }
}

// TestPush delivers messages to http addresses, over a real connection.
func TestPush(t *testing.T) {
	got := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- r.Method + " " + r.URL.Path + " " + r.Header.Get("Content-Type") + " " + string(body)
	}))
	defer server.Close()
	s := store.NewMemory()
	e := start(t, engine.Config{Store: s, ServerURL: "http://server"})
	do(t, e, target("task", server.URL+"/work"), 200)
	if m := <-got; m != `POST /work application/json {"kind":"execute","head":{"serverUrl":"http://server"},"data":{"task":{"id":"task","version":0}}}` {
		t.Error(m)
	}
	notify(t, e, "promise", server.URL+"/listen")
	if m := <-got; !strings.HasPrefix(m, `POST /listen application/json {"kind":"unblock","head":{"serverUrl":"http://server"},"data":{"promise":{"id":"promise","state":"resolved"`) {
		t.Error(m)
	}
	for e.Stats().Pushed.Delivered < 2 {
		time.Sleep(time.Millisecond)
	}
	must(t, e.Close(context.Background()))
	if n := outbox(t, s.Snapshot()); n != 0 {
		t.Errorf("%d messages are in the store", n)
	}
}

// TestPushLongHeader: the header of an answer is limited, so that receivers cannot fill the
// memory.
func TestPushLongHeader(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X", strings.Repeat("x", 1<<20))
	}))
	defer server.Close()
	e := start(t, engine.Config{Logger: quiet})
	do(t, e, target("task", server.URL), 200)
	for e.Stats().Pushed.Failed == 0 {
		if e.Stats().Pushed.Delivered > 0 {
			t.Fatal("a header of 1 MiB was read")
		}
		time.Sleep(time.Millisecond)
	}
}

// TestPushRetries: an unblock message is sent until it is delivered, with growing delays. An
// execute message is sent again by the retry of its task.
func TestPushRetries(t *testing.T) {
	for name, status := range map[string]int{"no connection": 0, "server error": 500, "redirect": 307, "not found": 404} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newReceivers(always(status))
				s := store.NewMemory()
				e := start(t, engine.Config{Store: s, Push: r, Logger: quiet})
				notify(t, e, "promise", "http://host/listen")
				do(t, e, target("task", "http://host/work"), 200)
				time.Sleep(10 * time.Minute)
				var unblocks, executes, others int
				for _, line := range r.take() {
					switch {
					case strings.HasSuffix(line, "http://host/listen unblock promise resolved"):
						unblocks++
					case strings.HasSuffix(line, "http://host/work execute task 0"):
						executes++
					default:
						others++
						t.Error(line)
					}
				}
				if unblocks < 10 || unblocks > 40 || executes < 10 || executes > 21 || others > 0 {
					t.Errorf("%d unblocks, %d executes, %d others", unblocks, executes, others)
				}
				r.set(always(204))
				time.Sleep(2 * time.Minute)
				if log := r.take(); len(log) < 2 {
					t.Error(log)
				}
				if n := outbox(t, s); n != 0 {
					t.Errorf("%d messages are in the store", n)
				}
				do(t, e, protocol.TaskHalt{ID: "task"}, 200)
				time.Sleep(time.Second)
				r.take()
				notify(t, e, "second", "http://host/listen")
				synctest.Wait()
				if log := r.take(); len(log) != 1 {
					t.Errorf("after the success there must be no delay: %q", log)
				}
			})
		})
	}
}

// TestPushLimits: the number of requests is limited, in all and for each address, and a slow
// address does not hold up the others.
func TestPushLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReceivers(func(url string) (int, time.Duration) {
			if strings.Contains(url, "slow") {
				return 200, time.Minute
			}
			return 200, time.Millisecond
		})
		e := start(t, engine.Config{Push: r})
		var ops []protocol.Operation
		for i := range 1000 {
			ops = append(ops, target(fmt.Sprint("slow", i), fmt.Sprintf("http://slow%d/", i%20)))
		}
		_, err := e.DoAll(t.Context(), ops)
		must(t, err)
		time.Sleep(time.Second)
		if all, one := r.peak(""), r.peak("http://slow0/"); all != engine.PushesMax || one > 32 {
			t.Error(all, one)
		}
		for i := range 20 {
			do(t, e, protocol.TaskHalt{ID: fmt.Sprint("slow", i)}, 200)
		}
		time.Sleep(10 * time.Minute)
		if s := e.Stats(); s.Pushed.Delivered < 1000 || s.Pushed.Failed > 0 {
			t.Errorf("%+v", s)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		r := newReceivers(func(url string) (int, time.Duration) {
			if strings.Contains(url, "slow") {
				return 200, time.Minute
			}
			return 200, 0
		})
		e := start(t, engine.Config{Push: r})
		for i := range 100 {
			do(t, e, target(fmt.Sprint("slow", i), "http://slow/"), 200)
		}
		do(t, e, target("fast", "http://fast/"), 200)
		synctest.Wait()
		if s := e.Stats(); s.Pushed.Delivered != 1 || r.peak("http://slow/") != 32 {
			t.Errorf("%+v %d", s, r.peak("http://slow/"))
		}
	})
}

// TestPushHost: a host that does not answer does not hold up the others, also if each
// message has an address of its own.
func TestPushHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReceivers(func(url string) (int, time.Duration) {
			if strings.Contains(url, "//slow/") {
				return 200, time.Minute
			}
			return 200, 0
		})
		e := start(t, engine.Config{Push: r})
		var ops []protocol.Operation
		for i := range 1000 {
			ops = append(ops, target(fmt.Sprint("slow", i), fmt.Sprint("http://slow/", i)))
		}
		_, err := e.DoAll(t.Context(), ops)
		must(t, err)
		do(t, e, target("fast", "http://fast/"), 200)
		synctest.Wait()
		if s := e.Stats(); s.Pushed.Delivered != 1 || r.peak("") > 64+1 {
			t.Errorf("%d delivered, %d at a time", s.Pushed.Delivered, r.peak(""))
		}
	})
}

// TestPushBytes: large messages to slow receivers wait in the store, and all are delivered.
func TestPushBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReceivers(func(string) (int, time.Duration) { return 200, time.Minute })
		e := start(t, engine.Config{Push: r})
		size := speed.Pick(t, 256<<10, 4<<20, 4<<20)
		if size < 4<<20 { // the limit is 64 MiB
			e.SetPushMax(1000, 16*size)
		}
		data := strings.Repeat("x", size)
		const messages = 20
		for i := range messages {
			id := fmt.Sprint(i)
			do(t, e, create(id, protocol.TagExternal, "true"), 200)
			do(t, e, protocol.RegisterListener{Awaited: id, Address: "http://host/" + id}, 200)
			do(t, e, protocol.PromiseSettle{ID: id, State: protocol.Resolved, Value: protocol.Value{Data: &data}}, 200)
		}
		time.Sleep(10 * time.Minute)
		if n := e.Stats().Pushed.Delivered; n != messages {
			t.Errorf("%d of %d messages were delivered", n, messages)
		}
		if most := r.peak(""); most != 16 {
			t.Errorf("%d messages were in memory, want 16", most)
		}
	})
}

// TestPushTimeout: a request that is not answered ends after PushTimeout, and Close does not
// wait for it.
func TestPushTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReceivers(func(string) (int, time.Duration) { return 200, 24 * time.Hour })
		s := store.NewMemory()
		e := start(t, engine.Config{Store: s, Push: r, Logger: quiet})
		notify(t, e, "promise", "http://host/")
		time.Sleep(engine.PushTimeout - time.Millisecond)
		if s := e.Stats(); s.Pushed.Failed != 0 {
			t.Errorf("%+v", s)
		}
		time.Sleep(time.Minute)
		if s := e.Stats(); s.Pushed.Failed != 1 || len(r.take()) != 2 {
			t.Errorf("%+v", s)
		}
		begin := time.Now()
		must(t, e.Close(t.Context()))
		if time.Since(begin) > 0 || outbox(t, s.Snapshot()) != 1 {
			t.Error("Close waited, or the message is lost")
		}
		r.set(always(200))
		e = start(t, engine.Config{Store: s.Snapshot(), Push: r})
		time.Sleep(2 * time.Second)
		if log := r.take(); len(log) != 1 || e.Stats().Pushed.Delivered != 1 {
			t.Errorf("%q", log)
		}
	})
}

// endless answers with a body that does not arrive.
type endless struct{}

func (endless) RoundTrip(r *http.Request) (*http.Response, error) {
	body, w := io.Pipe()
	context.AfterFunc(r.Context(), func() { _ = w.CloseWithError(r.Context().Err()) })
	return &http.Response{StatusCode: 200, Request: r, Body: body}, nil
}

// TestPushBody: the status of an answer counts, and its body is not waited for.
func TestPushBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, engine.Config{Store: store.NewMemory(), Push: endless{}, Logger: quiet})
		for i := range 1000 { // more than there are places for requests
			notify(t, e, fmt.Sprint("promise", i), "http://host/")
		}
		time.Sleep(time.Minute)
		if s := e.Stats(); s.Pushed.Delivered != 1000 {
			t.Errorf("%d messages were delivered in a minute, want 1000", s.Pushed.Delivered)
		}
	})
}

// broken has no connection to any host.
type broken struct{}

func (broken) RoundTrip(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF }

// TestPushLogOfMany: an address is logged once a minute, and so many addresses that a client cannot
// fill the log.
func TestPushLogOfMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lockedLog
		e := start(t, engine.Config{Store: store.NewMemory(), Push: broken{}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		for i := range 300 {
			notify(t, e, fmt.Sprint("promise", i), fmt.Sprintf("http://host%d/path", i))
		}
		time.Sleep(59 * time.Second)
		synctest.Wait()
		if n := strings.Count(log.String(), "a message was not delivered"); n != loglimit.KeysMax {
			t.Errorf("300 addresses that fail have %d lines in a minute, want %d", n, loglimit.KeysMax)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !strings.Contains(log.String(), "durable: events were not logged") {
			t.Error("no line has the number of the others")
		}
	})
}

// TestPushLog: the log has no user, password, query or fragment of an address, whatever fails.
func TestPushLog(t *testing.T) {
	for name, push := range map[string]http.RoundTripper{"status 500": newReceivers(always(500)), "no connection": broken{}} {
		for _, address := range []string{
			"http://secret@host/path", "http://user:secret@host/path", "http://host/path?token=secret", "http://host/path?secret",
			"http://host/path#secret", "https://secret:secret@host/path?a=secret&b=secret#secret", "http://host/path?token=%zzsecret",
		} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var log strings.Builder
					e := start(t, engine.Config{Store: store.NewMemory(), Push: push, Logger: slog.New(slog.NewTextHandler(&log, nil))})
					notify(t, e, "promise", address)
					synctest.Wait()
					if text := log.String(); !strings.Contains(text, "not delivered") || !strings.Contains(text, "host/path") || strings.Contains(text, "secret") {
						t.Errorf("%s: the log is %s", address, text)
					}
				})
			})
		}
	}
}

// A lockedLog is a log that a test reads while timers write to it.
type lockedLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lockedLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
