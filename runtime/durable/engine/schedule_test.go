package engine_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/store"
)

// TestCloseDuringTimeouts: Close does not wait until all timeouts that are due are
// processed.
func TestCloseDuringTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store.NewMemory()
		e := start(t, engine.Config{Store: s})
		var ops []protocol.Operation
		for i := range 5 * core.TickLimitDefault {
			p := create(fmt.Sprint("p", i), protocol.TagExternal, "true")
			p.TimeoutAt = time.Now().Add(time.Minute).UnixMilli()
			if ops = append(ops, p); len(ops) == 1000 {
				_, err := e.DoAll(t.Context(), ops)
				must(t, err)
				ops = nil
			}
		}
		must(t, e.Close(context.Background()))
		time.Sleep(time.Hour)
		h := &hooked{Store: s.Snapshot()}
		g := newGate(h)
		e = start(t, engine.Config{Store: h, Agreed: true})
		<-g.arrived
		closed := make(chan error)
		go func() { closed <- e.Close(context.Background()) }()
		synctest.Wait()
		g.open()
		must(t, <-closed)
		if n := h.commits.Load(); n > 2 {
			t.Errorf("%d commits", n)
		}
	})
}

// TestScheduleAcrossDowntime: a schedule of every second creates one promise for each
// second of the hours for which the engine was closed. Other callers do not wait for it.
func TestScheduleAcrossDowntime(t *testing.T) {
	down := speed.Pick(t, 2*time.Hour, 3*time.Hour, 24*time.Hour)
	synctest.Test(t, func(t *testing.T) {
		s, unbounded := store.NewMemory(), core.Config{MissedMax: 100_000}
		e := start(t, engine.Config{Store: s, Core: unbounded})
		do(t, e, protocol.ScheduleCreate{
			ID: "every-second", Cron: "* * * * * *", PromiseID: "{{.id}}-{{.timestamp}}", PromiseTimeout: 1e12,
			PromiseTags: map[string]string{protocol.TagTarget: "poll://any@g"},
		}, 200)
		time.Sleep(10*time.Second + 500*time.Millisecond)
		must(t, e.Close(context.Background()))
		time.Sleep(down)
		h := &hooked{Store: s.Snapshot()}
		g := newGate(h)
		e = start(t, engine.Config{Store: h, Core: unbounded, Logger: quiet, Agreed: true}) // no doubt about the clock
		<-g.arrived
		for i := range 3 { // a call shares the next transaction with occurrences
			call := later(t.Context(), e, create(fmt.Sprint("p", i)))
			g.pass <- struct{}{}
			<-g.arrived
			g.pass <- struct{}{}
			if o := <-call; o.err != nil || o.result.Status != 200 {
				t.Fatal(o)
			}
			<-g.arrived
		}
		if n := e.Stats().Schedules; n < 3000 || n > 6*core.TickLimitDefault {
			t.Errorf("%d promises in six transactions", n)
		}
		g.open()
		synctest.Wait()
		want := uint64(down / time.Second)
		if n := e.Stats().Schedules; n != want {
			t.Errorf("%d promises, want %d", n, want)
		}
		time.Sleep(3 * time.Second)
		if n := e.Stats().Schedules; n != want+3 {
			t.Errorf("%d promises, want %d", n, want+3)
		}
	})
}
