package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/store"
)

// checkLatest checks the invariants of a store whose clock was set back.
func checkLatest(t *testing.T, s store.Store) {
	t.Helper()
	must(t, s.View(func(tx store.Tx) error {
		latest, err := engine.LatestTime(tx)
		must(t, err)
		for _, v := range core.Check(tx, latest) {
			t.Errorf("%v", v)
		}
		return nil
	}))
}

// TestSetBack: a clock that is a year ahead for so long that it is believed, and a repair.
// Settled promises remain settled, also if only a read has seen it. Pending promises go on in
// the right time.
func TestSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, clock := store.NewMemory(), newJumpingClock()
		config := engine.Config{Store: s, Clock: clock, Logger: quiet, Core: core.Config{MissedMax: 100}}
		e := start(t, config)
		in := func(id string, d time.Duration, tags ...string) protocol.PromiseCreate {
			p := create(id, tags...)
			p.TimeoutAt = time.Now().Add(d).UnixMilli()
			return p
		}
		n := 2 * core.TickLimitDefault / 5 // of each of three kinds
		var creates []protocol.Operation
		for i := range n { // more than one step looks at
			creates = append(creates, in(fmt.Sprint("internal", i), day), in(fmt.Sprint("external", i), day, protocol.TagExternal, "true"), in(fmt.Sprint("long", i), 2*year))
		}
		doAll(t, e, creates)
		do(t, e, protocol.RegisterListener{Awaited: "external1", Address: "poll://any@l"}, 200)
		do(t, e, everyMinute("before"), 200)
		clock.jump(year)
		time.Sleep(62 * time.Second)
		do(t, e, everyMinute("during"), 200)
		do(t, e, in("created", 2*year, protocol.TagTarget, "poll://any@g"), 200)
		do(t, e, in("created and settled", 2*year), 200)
		settled := do(t, e, settle("created and settled"), 200).Promise
		if r := do(t, e, in("dead", day), 200); r.Promise.State != protocol.RejectedTimeout {
			t.Error("the jump is not believed")
		}
		time.Sleep(time.Minute)
		must(t, e.Close(context.Background()))
		clock.jump(-year)

		s = s.Snapshot()
		must(t, engine.SetBack(s, clock.Wall()))
		if err := engine.SetBack(s, clock.Wall()); !errors.Is(err, engine.ErrNotAhead) {
			t.Errorf("%v", err)
		}
		checkLatest(t, s)
		log := &logs{}
		config.Store, config.Logger = s, log.logger()
		e = start(t, config)
		now := time.Now().UnixMilli()
		if r := do(t, e, create("now"), 200); r.Promise.CreatedAt != now {
			t.Errorf("it is %d, and the store has %d", now, r.Promise.CreatedAt)
		}
		if r := do(t, e, in("alive", day), 200); r.Promise.State != protocol.Pending {
			t.Errorf("%+v", r.Promise)
		}
		for i := range n {
			for id, want := range map[string]protocol.PromiseState{"internal": protocol.RejectedTimeout, "external": protocol.RejectedTimeout, "long": protocol.Pending} {
				if r := do(t, e, protocol.PromiseGet{ID: fmt.Sprint(id, i)}, 200); r.Promise.State != want {
					t.Fatalf("%s is %s", r.Promise.ID, r.Promise.State)
				}
			}
		}
		if r := do(t, e, settle("internal7"), 200); r.Promise.State != protocol.RejectedTimeout {
			t.Errorf("%+v", r.Promise)
		}
		if r := do(t, e, protocol.PromiseGet{ID: "created and settled"}, 200); *r.Promise.SettledAt != *settled.SettledAt {
			t.Errorf("%+v", r.Promise)
		}
		if r := do(t, e, settle("created"), 200); r.Promise.CreatedAt > *r.Promise.SettledAt || *r.Promise.SettledAt != now {
			t.Errorf("%+v", r.Promise)
		}
		if got := receive(t, connect(t, e, "l", "p")); got != "unblock external1 rejected_timedout" {
			t.Error(got)
		}
		made := e.Stats().Schedules
		time.Sleep(2 * time.Minute)
		if n := e.Stats().Schedules - made; n != 4 {
			t.Errorf("two schedules have created %d promises in two minutes", n)
		}
		if r := do(t, e, protocol.ScheduleGet{ID: "during"}, 200); r.Schedule.CreatedAt > now || *r.Schedule.LastRunAt > time.Now().UnixMilli() {
			t.Errorf("%+v", r.Schedule)
		}
		log.has(t)
		must(t, e.Close(context.Background()))
		checkLatest(t, s.Snapshot())
	})
}
