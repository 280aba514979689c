package replicated_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
)

// shiftedClock is the clock of a computer whose time of day a test sets.
type shiftedClock struct {
	engine.Clock
	shift atomic.Int64
}

func (c *shiftedClock) Wall() time.Time { return c.Clock.Wall().Add(time.Duration(c.shift.Load())) }

func (c *shiftedClock) jump(d time.Duration) { c.shift.Add(int64(d)) }

// logs keeps what nodes log.
type logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logs) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logs) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), text)
}

// ok carries out an operation that must succeed. An engine that is replaced answers 500.
func (g *group) ok(name string, op protocol.Operation) protocol.Result {
	g.t.Helper()
	r := g.do(name, op)
	for r.Status == protocol.Internal {
		r = g.do(name, op)
	}
	if r.Status != protocol.OK {
		g.t.Fatalf("%s at %s: %d %s", op.Kind(), name, r.Status, r.Error)
	}
	return r
}

const year = 365 * 24 * time.Hour

// TestAnswersOutliveTheLeader: a client that has learned that a deadline has passed never
// learns the contrary, although the clocks of the next leader and of all others are behind.
func TestAnswersOutliveTheLeader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		leader := g.leader()
		p := create("p")
		p.TimeoutAt = time.Now().Add(100 * time.Millisecond).UnixMilli()
		g.do(leader, p)
		for g.ok(leader, protocol.PromiseGet{ID: "p"}).Promise.State == protocol.Pending {
		}
		for _, c := range g.clocks {
			c.jump(-time.Hour)
		}
		g.cut(leader, true)
		defer g.cut(leader, false)
		var other string
		for _, name := range names {
			if name != leader {
				other = name
			}
		}
		if r := g.ok(other, protocol.PromiseGet{ID: "p"}); r.Promise.State != protocol.RejectedTimeout {
			t.Errorf("the next leader shows the promise as %s", r.Promise.State)
		}
		if r := g.ok(other, protocol.PromiseSettle{ID: "p", State: protocol.Resolved}); r.Promise.State != protocol.RejectedTimeout {
			t.Errorf("at the next leader the promise was %s", r.Promise.State)
		}
	})
}

// TestLeaderAYearAhead: the node that leads has a clock that is a year ahead, from its start
// and then again for a moment. Nothing times out, schedules create nothing, and the next
// leader goes on with the right time.
func TestLeaderAYearAhead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := &logs{}
		g := unopened(t, engine.Config{Logger: slog.New(slog.NewTextHandler(log, nil))}, 20*time.Second)
		g.prefer = "n1"
		g.clocks["n1"].jump(year)
		for _, name := range names {
			g.start(name)
		}
		for g.leader() != "n1" {
		}
		pending := func(id, at string) {
			t.Helper()
			p := create(id)
			p.Tags = map[string]string{protocol.TagExternal: "true"}
			now := time.Now().UnixMilli()
			r := g.ok(at, p)
			if r.Promise.State != protocol.Pending || r.Promise.CreatedAt > now+time.Hour.Milliseconds() {
				t.Errorf("%s: %+v, and it is %d", id, r.Promise, now)
			}
		}
		pending("ahead", "n1")
		schedule := protocol.ScheduleCreate{
			ID: "s", Cron: "0 * * * *", PromiseID: "{{.timestamp}}", PromiseTimeout: 1e6, PromiseTags: map[string]string{protocol.TagTarget: "poll://any@g"},
		}
		if r := g.ok("n1", schedule); r.Schedule.NextRunAt > time.Now().Add(2*time.Hour).UnixMilli() {
			t.Errorf("%+v", r.Schedule)
		}
		g.clocks["n1"].jump(-year)
		pending("right", "n1")
		g.clocks["n1"].jump(year)
		pending("again", "n1")
		for !log.has("the clock of this node differs by") {
			pending("again", "n1")
		}
		g.stop("n1")
		pending("next", "n2")
		for _, id := range []string{"ahead", "right", "again", "next"} {
			if r := g.ok("n2", protocol.PromiseGet{ID: id}); r.Promise.State != protocol.Pending {
				t.Errorf("%s: %+v", id, r.Promise)
			}
		}
		if r := g.ok("n2", protocol.PromiseSearch{Tags: map[string]string{protocol.TagSchedule: "s"}}); len(r.Promises) > 1 {
			t.Errorf("the schedule has created %d promises", len(r.Promises))
		}
	})
}

// TestNodeAloneAYearAhead: a group of one node has no other clock that agrees, so it doubts a
// jump like a server alone.
func TestNodeAloneAYearAhead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := unopened(t, engine.Config{}, 20*time.Second)
		g.peers = map[string]string{"n1": g.peers["n1"]}
		g.start("n1")
		day := create("day")
		day.TimeoutAt = time.Now().Add(24 * time.Hour).UnixMilli()
		g.ok("n1", day)
		g.stop("n1")
		g.clocks["n1"].jump(year)
		g.start("n1")
		for _, r := range []protocol.Result{g.ok("n1", protocol.PromiseGet{ID: "day"}), g.ok("n1", create("new"))} {
			if r.Promise.State != protocol.Pending || r.Promise.CreatedAt > time.Now().Add(time.Hour).UnixMilli() {
				t.Errorf("%+v", r.Promise)
			}
		}
	})
}

// TestSetBack: the clocks of all nodes were a year ahead, and the group has believed them.
// Nodes that run with SetBack continue with the right time, and undo nothing.
func TestSetBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := &logs{}
		g := unopened(t, engine.Config{Logger: slog.New(slog.NewTextHandler(log, nil))}, 20*time.Second)
		restart := func(by time.Duration) {
			for _, name := range names {
				g.stop(name)
			}
			for _, name := range names {
				g.clocks[name].jump(by)
				g.start(name)
			}
		}
		restart(year)
		if r := g.ok("n1", create("dead")); r.Promise.State != protocol.RejectedTimeout {
			t.Fatalf("the clocks are not ahead: %+v", r.Promise)
		}
		p := create("seen")
		p.TimeoutAt = time.Now().Add(year + 100*time.Millisecond).UnixMilli()
		g.ok("n1", p)
		for g.ok("n1", protocol.PromiseGet{ID: "seen"}).Promise.State == protocol.Pending {
		}
		p.ID, p.TimeoutAt = "open", p.TimeoutAt+year.Milliseconds()
		g.ok("n1", p)
		restart(-year)
		if r := g.ok("n1", create("still dead")); r.Promise.State != protocol.RejectedTimeout || log.has("set back") {
			t.Fatalf("nothing must go back by itself: %+v", r.Promise)
		}
		g.setBack = true
		restart(0)
		for id, want := range map[string]protocol.PromiseState{
			"dead": protocol.RejectedTimeout, "seen": protocol.RejectedTimeout, "still dead": protocol.RejectedTimeout, "alive": protocol.Pending, "open": protocol.Pending,
		} {
			if r := g.ok("n1", create(id)); r.Promise.State != want { // it exists already, except for "alive"
				t.Errorf("%s: %+v", id, r.Promise)
			}
		}
		if !log.has("was ahead of the clocks of the nodes, and was set back") {
			t.Error("the log does not say it")
		}
	})
}
