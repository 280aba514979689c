package engine_test

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/store"
)

// TestDebugIsRefused: without Config.Debug, the operations for tests have status 403.
func TestDebugIsRefused(t *testing.T) {
	e := start(t, engine.Config{})
	do(t, e, create("p"), 200)
	for _, op := range []protocol.Operation{
		protocol.DebugStart{}, protocol.DebugStop{}, protocol.DebugReset{}, protocol.DebugSnap{}, protocol.DebugTick{Time: 1},
	} {
		do(t, e, op, 403)
	}
	ctx := engine.WithTime(t.Context(), 1)
	for _, op := range []protocol.Operation{create("q"), protocol.PromiseGet{ID: "p"}} {
		if r, err := e.Do(ctx, op); err != nil || r.Status != 403 {
			t.Error(r, err)
		}
	}
	do(t, e, protocol.PromiseGet{ID: "p"}, 200)
}

// TestDebugTickEndsWithClose: a tick over thirty years of seconds does not hold up Close.
func TestDebugTickEndsWithClose(t *testing.T) {
	ticks := speed.Tenth(t, speed.Pick(t, 2000, core.DebugTickMaxDefault, core.DebugTickMaxDefault))
	h := &hooked{Store: store.NewMemory()}
	e := start(t, engine.Config{Store: h, Debug: true, Core: core.Config{MissedMax: math.MaxInt32, DebugTickMax: ticks}})
	do(t, e, protocol.ScheduleCreate{
		ID: "s", Cron: "* * * * * *", PromiseID: "{{.timestamp}}", PromiseTags: map[string]string{protocol.TagTarget: "poll://any@g"},
	}, 200)
	closed := make(chan error, 1)
	var once sync.Once
	h.set(func() {
		h.commit = func() error {
			once.Do(func() { go func() { closed <- e.Close(t.Context()) }() })
			return nil
		}
	})
	do(t, e, protocol.DebugTick{Time: time.Now().AddDate(30, 0, 0).UnixMilli()}, 500)
	must(t, <-closed)
}

// TestDebugTime: a test controls the time of each operation, and when timeouts are
// processed.
func TestDebugTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, engine.Config{Debug: true})
		c := connect(t, e, "g", "p")
		do(t, e, protocol.DebugStart{}, 200)
		at := func(ms int64, op protocol.Operation) protocol.Result {
			t.Helper()
			r, err := e.Do(engine.WithTime(t.Context(), ms), op)
			must(t, err)
			if r.Status != 200 {
				t.Fatal(r)
			}
			return r
		}
		p := target("p", "poll://any@g")
		p.TimeoutAt = 5000
		if r := at(1000, p); r.Promise.CreatedAt != 1000 {
			t.Error(r.Promise)
		}
		at(1000, protocol.RegisterListener{Awaited: "p", Address: "poll://any@g"})
		expect(t, c, "execute p 0")
		at(2000, protocol.TaskAcquire{ID: "p", PID: "p", TTL: 1000})
		at(2999, protocol.DebugTick{Time: 2999})
		time.Sleep(time.Hour) // debug.start has stopped the timeouts
		expect(t, c)
		at(3000, protocol.DebugTick{Time: 3000})
		expect(t, c, "execute p 1")
		if r := at(4999, protocol.PromiseGet{ID: "p"}); r.Promise.State != protocol.Pending {
			t.Error(r.Promise)
		}
		if r := at(5000, protocol.PromiseGet{ID: "p"}); r.Promise.State != protocol.RejectedTimeout {
			t.Error(r.Promise)
		}
		if r := do(t, e, protocol.DebugSnap{}, 200); len(r.Snapshot.Promises) != 1 || r.Snapshot.Promises[0].State != protocol.Pending {
			t.Errorf("%+v", r.Snapshot)
		}
		at(5000, protocol.DebugTick{Time: 5000})
		expect(t, c, "unblock p rejected_timedout")
		p.ID, p.TimeoutAt = "q", time.Now().UnixMilli()+10
		do(t, e, p, 200)
		time.Sleep(time.Second)
		if r := do(t, e, protocol.DebugSnap{}, 200); r.Snapshot.Promises[1].State != protocol.Pending {
			t.Errorf("%+v", r.Snapshot)
		}
		do(t, e, protocol.DebugStop{}, 200)
		time.Sleep(time.Second)
		if r := do(t, e, protocol.DebugSnap{}, 200); r.Snapshot.Promises[1].State != protocol.RejectedTimeout {
			t.Errorf("%+v", r.Snapshot)
		}
		do(t, e, target("held", "poll://any@nobody"), 200)
		do(t, e, protocol.DebugReset{}, 200)
		if r := do(t, e, protocol.DebugSnap{}, 200); len(r.Snapshot.Promises) != 0 {
			t.Errorf("%+v", r.Snapshot)
		}
		expect(t, connect(t, e, "nobody", "p"))
	})
}

// TestDebugTickOfAFailedStore: a debug.tick that continues in another transaction is
// answered when the store fails before that.
func TestDebugTickOfAFailedStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hooked{Store: store.NewMemory()}
		e := start(t, engine.Config{Store: h, Debug: true, Logger: quiet, Core: core.Config{MissedMax: math.MaxInt32, DebugTickMax: 2000}})
		do(t, e, create("p"), 200)
		do(t, e, protocol.ScheduleCreate{ID: "s", Cron: "* * * * * *", PromiseID: "{{.timestamp}}", PromiseTags: map[string]string{protocol.TagTarget: "poll://any@g"}}, 200)
		must(t, h.Store.Update(func(tx store.Tx) error { tx.Put(core.Promises, []byte("p"), []byte("damage")); return nil }))
		h.set(func() { h.commit = func() error { do(t, e, protocol.PromiseGet{ID: "p"}, 500); return nil } })
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := e.Do(ctx, protocol.DebugTick{Time: time.Now().Add(72 * time.Hour).UnixMilli()})
		if !errors.Is(err, engine.ErrStopped) {
			t.Error(err)
		}
	})
}
