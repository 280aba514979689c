package local_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/local"
	"github.com/topogen/topogen/runtime/durable/protocol"
)

// A lab is a server with a clock that the test sets.
type lab struct {
	*testing.T
	now    time.Time
	server *local.Server
}

func newLab(t *testing.T) *lab {
	l := &lab{T: t, now: time.Date(2026, 1, 1, 0, 0, 0, 123_456, time.UTC)}
	var err error
	if l.server, err = local.New(core.Config{}, func() time.Time { return l.now }); err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *lab) do(op protocol.Operation) protocol.Result {
	l.Helper()
	r, err := l.server.Do(l.Context(), op)
	if err != nil || r.Status != protocol.OK {
		l.Fatalf("%s: %v %v", op.Kind(), r, err)
	}
	return r
}

func (l *lab) create(id, target string, after time.Duration, tags ...string) {
	l.Helper()
	op := protocol.PromiseCreate{ID: id, TimeoutAt: l.now.Add(after).UnixMilli(), Tags: map[string]string{protocol.TagTarget: target}}
	for _, tag := range tags {
		op.Tags[tag] = "true"
	}
	l.do(op)
}

func (l *lab) connect(group, pid string) protocol.Connection {
	l.Helper()
	c, err := l.server.Connect(group, pid)
	if err != nil {
		l.Fatal(err)
	}
	return c
}

// received returns the messages that a connection has.
func received(c protocol.Connection) string {
	var all []string
	for {
		select {
		case m, ok := <-c.Messages():
			switch {
			case !ok:
				return strings.Join(append(all, "end"), " ")
			case m.Execute != nil:
				all = append(all, fmt.Sprint("execute ", m.Execute.ID, " ", m.Execute.Version))
			case m.Unblock != nil:
				all = append(all, fmt.Sprint("unblock ", m.Unblock.ID, " ", m.Unblock.State))
			}
		default:
			return strings.Join(all, " ")
		}
	}
}

func (l *lab) want(what, got, want string) {
	l.Helper()
	if got != want {
		l.Errorf("%s: %q, want %q", what, got, want)
	}
}

// TestMessages sends tasks to groups with no process, two processes and a certain process.
func TestMessages(t *testing.T) {
	l := newLab(t)
	l.create("early", "poll://any@g", time.Hour)
	a := l.connect("g", "a")
	l.want("a message from before the connection", received(a), "execute early 0")
	b := l.connect("g", "b")
	for i := range 4 {
		l.create(fmt.Sprint("t", i), "poll://any@g", time.Hour)
	}
	l.want("a", received(a), "execute t1 0 execute t3 0")
	l.want("b", received(b), "execute t0 0 execute t2 0")
	l.create("u", "poll://uni@g/a", time.Hour)
	l.create("v", "poll://any@g/a", time.Hour)
	l.create("w", "poll://any@g/gone", time.Hour)
	l.create("x", "http://127.0.0.1:1", time.Hour)
	l.create("y", "poll://any@other", time.Hour)
	l.want("a", received(a), "execute u 0 execute v 0")
	l.want("b", received(b), "execute w 0")

	// Messages that were not received go to the other process.
	l.create("p", "poll://any@g/b", time.Hour)
	l.create("q", "poll://any@g/b", time.Hour)
	b.Close()
	b.Close()
	l.want("b after its end", received(b), "end")
	l.want("a", received(a), "execute p 0 execute q 0")

	again := l.connect("g", "a")
	l.want("a connection that was replaced", received(a), "end")
	l.create("r", "poll://any@g", time.Hour)
	l.want("the new one", received(again), "execute r 0")
	l.server.Close()
	l.want("after the end of the server", received(again), "end")
	if _, err := l.server.Do(context.Background(), protocol.PromiseGet{ID: "p"}); !errors.Is(err, local.ErrClosed) {
		t.Errorf("Do of a closed server returned %v", err)
	}
	if _, err := l.server.Connect("g", "a"); !errors.Is(err, local.ErrClosed) {
		t.Errorf("Connect of a closed server returned %v", err)
	}
}

// TestTime lets promises and leases end.
func TestTime(t *testing.T) {
	l := newLab(t)
	if at, ok := l.server.Next(); ok || l.server.Step() {
		t.Errorf("an empty server has something to do at %v", at)
	}
	a := l.connect("g", "a")
	l.create("t", "poll://any@g", time.Minute)
	l.do(protocol.RegisterListener{Awaited: "t", Address: "poll://uni@g/late"})
	l.want("a", received(a), "execute t 0")
	l.do(protocol.TaskAcquire{ID: "t", PID: "a", TTL: 10_000})
	for i, want := range []time.Duration{10 * time.Second, 40 * time.Second, time.Minute} {
		at, ok := l.server.Next()
		if d := at.Sub(l.now.Truncate(time.Millisecond)); !ok || at.Sub(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)) != want {
			t.Fatalf("event %d is after %v", i, d)
		}
		if l.server.Step() {
			t.Errorf("event %d was processed before its time", i)
		}
		l.now = at
		if !l.server.Step() || l.server.Step() {
			t.Errorf("event %d was not processed once", i)
		}
	}
	l.want("a", received(a), "execute t 1 execute t 1")
	late := l.connect("g", "late")
	l.want("an unblock from before the connection", received(late), "unblock t rejected_timedout")
	late.Close()
	l.want("an unblock that was delivered", received(l.connect("g", "late")), "")
	l.server.View(func(kv core.KV, now core.Instant) {
		if v := core.Check(kv, now); len(v) > 0 {
			t.Error(v)
		}
	})
}
