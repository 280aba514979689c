package server_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/durable/client"
	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/server"
)

func scrape(t testing.TB, s *server.Server) string {
	t.Helper()
	response, body := exchange(t, "GET", "http://"+s.MetricsAddress()+"/metrics", "", nil)
	if response.StatusCode != 200 {
		t.Fatalf("/metrics: got status %d", response.StatusCode)
	}
	return body
}

// count returns the value of a counter, or -1.
func count(text, name string) int {
	_, rest, _ := strings.Cut(text, "\n"+name+" ")
	value, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.Atoi(value)
	if err != nil {
		return -1
	}
	return n
}

// soon is a clock on which a second begins 100 ms after its creation.
type soon struct {
	engine.Clock
	ahead time.Duration
}

func newSoon() soon {
	now := time.Now()
	next := now.Truncate(time.Second).Add(time.Second)
	return soon{engine.NewClock(), next.Sub(now) - 100*time.Millisecond}
}

func (s soon) Wall() time.Time { return s.Clock.Wall().Add(s.ahead) }

// TestMetrics is row S15: the metrics of the original server, with its names and labels.
func TestMetrics(t *testing.T) {
	t.Parallel()
	s := listen(t, server.Config{Backend: openEngine(t, engine.Config{Clock: newSoon()}), MetricsListen: "127.0.0.1:0"})
	c := connect(t, s, client.Options{})
	worker, err := c.Connect("g", "p")
	if err != nil {
		t.Fatal(err)
	}
	do(t, c, 200, targeted("a", "poll://any@g"))
	do(t, c, 200, protocol.RegisterListener{Awaited: "a", Address: "poll://any@g"})
	receive(t, worker)
	do(t, c, 200, protocol.PromiseSettle{ID: "a", State: protocol.Resolved})
	receive(t, worker)
	do(t, c, 404, protocol.PromiseGet{ID: "none"})
	do(t, c, 200, protocol.ScheduleCreate{ID: "s", Cron: "* * * * * *", PromiseID: "s.{{.timestamp}}", PromiseTimeout: 1000, PromiseTags: map[string]string{protocol.TagTarget: "poll://any@g"}})
	if m := receive(t, worker); m.Execute == nil || !strings.HasPrefix(m.Execute.ID, "s.") {
		t.Errorf("got %+v, want the first promise of the schedule", m)
	}
	do(t, c, 200, protocol.ScheduleDelete{ID: "s"})
	exchange(t, "POST", s.URL(), envelope("made-up", "1", "", "{}"), nil)
	exchange(t, "POST", s.URL(), "not JSON", nil)
	until(t, "the deliveries are counted", func() bool { // after the messages have arrived
		return count(scrape(t, s), `resonate_deliveries_total{status="success"}`) >= 3
	})
	text := scrape(t, s)
	for _, line := range []string{
		`resonate_request_total{kind="promise.create",status="200"} 1`,
		`resonate_request_total{kind="promise.get",status="404"} 1`,
		`resonate_request_total{kind="unknown",status="400"} 2`,
		`resonate_request_duration_seconds_count{kind="promise.create"} 1`,
		`resonate_messages_total{kind="unblock"} 1`,
		`resonate_deliveries_total{status="error"} 0`,
		`topogen_durable_streams 1`,
		`topogen_durable_connections_refused_total 0`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("the metrics lack %s", line)
		}
	}
	if strings.Contains(text, "made-up") {
		t.Error("a client can add series")
	}
	for name, least := range map[string]int{ // a schedule of every second may have run again
		`resonate_messages_total{kind="execute"}`: 2,
		`resonate_schedule_promises_total`:        1,
		`topogen_durable_commit_seconds_count`:    5,
	} {
		if n := count(text, name); n < least {
			t.Errorf("%s is %d, want at least %d", name, n, least)
		}
	}
}
