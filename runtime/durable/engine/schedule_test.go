package engine_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/store"
	"github.com/topogen/topogen/runtime/internal/race"
)

// TestScheduleAcrossDowntime: a schedule of every second creates one promise for each
// second of a day on which the engine was closed. Other callers do not wait for it.
func TestScheduleAcrossDowntime(t *testing.T) {
	down := 24 * time.Hour
	if testing.Short() || race.Enabled {
		down = time.Hour
	}
	synctest.Test(t, func(t *testing.T) {
		s := store.NewMemory()
		e := start(t, engine.Config{Store: s})
		do(t, e, protocol.ScheduleCreate{
			ID: "every-second", Cron: "* * * * * *", PromiseID: "{{.id}}-{{.timestamp}}", PromiseTimeout: 1e12,
			PromiseTags: map[string]string{protocol.TagTarget: "poll://any@g"},
		}, 200)
		time.Sleep(10 * time.Second)
		must(t, e.Close(context.Background()))
		time.Sleep(down)
		h := &hooked{Store: s.Snapshot()}
		g := newGate(h)
		e = start(t, engine.Config{Store: h})
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
		time.Sleep(3*time.Second + time.Millisecond)
		if n := e.Stats().Schedules; n != want+3 {
			t.Errorf("%d promises, want %d", n, want+3)
		}
	})
}
