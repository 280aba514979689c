package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"strings"
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

// logs keeps what an engine logs.
type logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logs) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logs) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// take returns what was logged since the last call.
func (l *logs) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := l.text.String()
	l.text.Reset()
	return text
}

// has checks that each of some texts was logged once since the last call, and no others.
func (l *logs) has(t *testing.T, texts ...string) {
	t.Helper()
	text := l.take()
	for _, want := range texts {
		if strings.Count(text, want) != 1 {
			t.Errorf("logged %d times: %s\nin:\n%s", strings.Count(text, want), want, text)
		}
	}
	if n := strings.Count(text, "\n"); n != len(texts) {
		t.Errorf("%d lines, want %d:\n%s", n, len(texts), text)
	}
}

func everyMinute(id string) protocol.ScheduleCreate {
	return protocol.ScheduleCreate{
		ID: id, Cron: "* * * * *", PromiseID: "{{.id}}-{{.timestamp}}", PromiseTimeout: 3600_000,
		PromiseTags: map[string]string{protocol.TagTarget: "poll://any@g"},
	}
}

// TestYearAhead: the clock of the computer is a year ahead for 2 s, while the engine runs or
// at its start. Nothing times out, a schedule creates nothing, and the store is as good as
// before after the next start.
func TestYearAhead(t *testing.T) {
	for _, atStart := range []bool{false, true} {
		t.Run(fmt.Sprint("at start: ", atStart), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, clock, log := store.NewMemory(), newJumpingClock(), &logs{}
				config := engine.Config{Store: s, Clock: clock, Logger: log.logger()}
				e := start(t, config)
				in := func(id string, d time.Duration) protocol.PromiseCreate {
					p := create(id, protocol.TagExternal, "true")
					p.TimeoutAt = time.Now().Add(d).UnixMilli()
					return p
				}
				do(t, e, in("day", 24*time.Hour), 200)
				do(t, e, in("second", 3*time.Second), 200)
				do(t, e, everyMinute("s"), 200)
				begun := "the clock of the computer has jumped forward"
				if atStart {
					must(t, e.Close(context.Background()))
				}
				clock.jump(year)
				if atStart {
					config.Store, begun = s.Snapshot(), "the last commit is old"
					e = start(t, config)
				}
				time.Sleep(time.Second)
				if r := do(t, e, in("during", 24*time.Hour), 200); r.Promise.State != protocol.Pending {
					t.Errorf("%+v", r.Promise)
				}
				log.has(t, begun)
				time.Sleep(time.Second)
				clock.jump(-year)
				time.Sleep(2 * time.Second)
				log.has(t, "has jumped back; its jump forward had no effect")
				must(t, e.Close(context.Background()))
				config.Store = config.Store.(*store.Memory).Snapshot()
				e = start(t, config)
				if r := do(t, e, in("after", 24*time.Hour), 200); r.Promise.State != protocol.Pending {
					t.Errorf("%+v", r.Promise)
				}
				for id, want := range map[string]protocol.PromiseState{"day": protocol.Pending, "second": protocol.RejectedTimeout, "during": protocol.Pending} {
					if r := do(t, e, protocol.PromiseGet{ID: id}, 200); r.Promise.State != want {
						t.Errorf("%s is %s, want %s", id, r.Promise.State, want)
					}
				}
				time.Sleep(2 * time.Minute)
				if r := do(t, e, protocol.PromiseSearch{Tags: map[string]string{protocol.TagSchedule: "s"}}, 200); len(r.Promises) != 2 {
					t.Errorf("the schedule has created %d promises in two minutes", len(r.Promises))
				}
				log.has(t)
				check(t, config.Store)
			})
		})
	}
}

// TestSameJumpAfterAKill: a clock is ahead at a start and then corrected. The process is killed
// before it has other work, and the clock is ahead again: it is doubted again.
func TestSameJumpAfterAKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, clock := store.NewMemory(), newJumpingClock()
		config := engine.Config{Store: s, Clock: clock, Logger: quiet}
		e := start(t, config)
		zero := wall(t, e, "zero")
		must(t, e.Close(context.Background()))
		for i := range 3 {
			clock.jump(day)
			config.Store = config.Store.(*store.Memory).Snapshot()
			e = start(t, config)
			time.Sleep(5 * time.Second)
			if got := wall(t, e, fmt.Sprint(i)) - zero; got > time.Hour {
				t.Errorf("start %d: the time has advanced by %v", i, got)
			}
			clock.jump(-day)
			time.Sleep(time.Minute)
		}
	})
}

// TestOldDoubt: a doubt that an earlier process has stored is about its own time. It does not let a
// later jump through.
func TestOldDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, clock := store.NewMemory(), newJumpingClock()
		config := engine.Config{Store: s, Clock: clock, Logger: quiet}
		e := start(t, config)
		zero := wall(t, e, "zero")
		must(t, e.Close(context.Background()))
		time.Sleep(time.Hour)
		config.Store = s.Snapshot()
		e = start(t, config)
		time.Sleep(time.Second) // it ends within its doubt
		wall(t, e, "one")
		must(t, e.Close(context.Background()))
		time.Sleep(day)
		clock.jump(10 * 365 * day)
		config.Store = config.Store.(*store.Memory).Snapshot()
		e = start(t, config)
		time.Sleep(5 * time.Second)
		if got := wall(t, e, "two") - zero; got > 2*day {
			t.Errorf("the time has advanced by %v", got)
		}
	})
}

// TestBelievedJumps: a jump that lasts is believed. Deadlines within it pass then, and a
// schedule makes up for what it has missed, as after a month without a computer.
func TestBelievedJumps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, clock, log := store.NewMemory(), newJumpingClock(), &logs{}
		config := engine.Config{Store: s, Clock: clock, Logger: log.logger(), Core: core.Config{MissedMax: 500}}
		e := start(t, config)
		p := create("p", protocol.TagExternal, "true")
		p.TimeoutAt = time.Now().Add(24 * time.Hour).UnixMilli()
		do(t, e, p, 200)
		do(t, e, everyMinute("s"), 200)
		clock.jump(30 * 24 * time.Hour)
		time.Sleep(9 * time.Second)
		if r := do(t, e, protocol.PromiseGet{ID: "p"}, 200); r.Promise.State != protocol.Pending {
			t.Errorf("%+v", r.Promise)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if r := do(t, e, protocol.PromiseGet{ID: "p"}, 200); r.Promise.State != protocol.RejectedTimeout {
			t.Errorf("%+v", r.Promise)
		}
		if s := e.Stats(); s.Schedules != 500 || s.Gaps != 1 {
			t.Errorf("%d promises of a schedule, and %d gaps", s.Schedules, s.Gaps)
		}
		log.has(t, "has jumped forward", "is believed now", "skips the oldest")
		clock.jump(-time.Hour)
		time.Sleep(2 * time.Second)
		log.has(t, "is behind the time of the store")
		for i := range 100 {
			late := create(fmt.Sprint("late", i))
			late.TimeoutAt = time.Now().Add(30*24*time.Hour - 30*time.Minute).UnixMilli() // in half an hour by the clock of the computer
			do(t, e, late, 200)
		}
		log.has(t, "promises time out when they are created")
		time.Sleep(3 * time.Hour)
		log.has(t, "has caught up")
		check(t, s)
	})
}

// TestScheduleInDoubt: a new schedule waits until the time of day is certain. So it makes up
// for nothing that was before its creation. A schedule that exists does not wait.
func TestScheduleInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, clock := store.NewMemory(), newJumpingClock()
		config := engine.Config{Store: s, Clock: clock, Logger: quiet}
		e := start(t, config)
		do(t, e, everyMinute("old"), 200)
		must(t, e.Close(context.Background()))
		time.Sleep(24 * time.Hour)
		config.Store = s.Snapshot()
		e = start(t, config)
		begin := time.Now()
		do(t, e, everyMinute("old"), 200)
		do(t, e, create("p"), 200)
		if time.Since(begin) > 0 {
			t.Errorf("a schedule that exists has waited for %v", time.Since(begin))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, err := e.Do(ctx, everyMinute("impatient")); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		do(t, e, protocol.ScheduleGet{ID: "impatient"}, 404)
		r := do(t, e, everyMinute("new"), 200)
		if passed := time.Since(begin); passed < 10*time.Second || passed > 11*time.Second {
			t.Errorf("a new schedule has waited for %v", passed)
		}
		if at := time.Now().UnixMilli(); r.Schedule.CreatedAt != at {
			t.Errorf("created at %d, and it is %d", r.Schedule.CreatedAt, at)
		}
		time.Sleep(5 * time.Minute)
		for id, want := range map[string]int{"new": 5, "old": 100} {
			if r := do(t, e, protocol.PromiseSearch{Tags: map[string]string{protocol.TagSchedule: id}}, 200); len(r.Promises) != want {
				t.Errorf("%s has created %d promises, want %d", id, len(r.Promises), want)
			}
		}
		clock.jump(time.Hour)
		waiting := later(t.Context(), e, everyMinute("closed"))
		time.Sleep(5 * time.Second)
		must(t, e.Close(context.Background()))
		if o := <-waiting; o.err != nil || o.result.Status != protocol.Unavailable {
			t.Errorf("%+v", o)
		}
	})
}

// TestRandomClocks: clocks that jump in both directions while processes are killed and
// started again. A promise that any answer has shown as settled is the same in all later
// answers, and the invariants hold.
func TestRandomClocks(t *testing.T) {
	first, end := speed.Seeds(t, 6, 30, 5000)
	for seed := first; seed < end; seed++ {
		synctest.Test(t, func(t *testing.T) { randomClocks(t, seed) })
		if t.Failed() {
			t.Fatal(speed.Repeat(t, seed))
		}
	}
}

func randomClocks(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 31))
	clock := newJumpingClock()
	config := engine.Config{Store: store.NewMemory(), Clock: clock, Logger: quiet}
	e := start(t, config)
	settled := map[string]protocol.Promise{}
	shown := func(p protocol.Promise) {
		old, known := settled[p.ID]
		switch {
		case known && !reflect.DeepEqual(old, p):
			t.Fatalf("%s was shown as %+v, and then as %+v", p.ID, old, p)
		case p.State != protocol.Pending:
			settled[p.ID] = p
		}
	}
	see := func(r protocol.Result) {
		if r.Promise != nil {
			shown(*r.Promise)
		}
		for _, p := range r.Promises {
			shown(p)
		}
	}
	for i := range 300 {
		id := fmt.Sprint("p", r.IntN(30))
		var op protocol.Operation = protocol.PromiseGet{ID: id}
		switch r.IntN(10) {
		case 0, 1:
			p := create(id, protocol.TagOrigin, "o")
			if r.IntN(2) == 0 {
				p.Tags[protocol.TagExternal] = "true"
			}
			p.TimeoutAt = clock.Wall().Add(time.Duration(r.IntN(60_000)) * time.Millisecond).UnixMilli()
			op = p
		case 2:
			op = settle(id)
		case 3:
			op = protocol.PromiseSearch{State: []protocol.PromiseState{"", protocol.Pending, protocol.RejectedTimeout}[r.IntN(3)]}
		case 4:
			clock.jump([]time.Duration{-5 * time.Second, -time.Hour, time.Second, 50 * time.Second, time.Hour, year, -year}[r.IntN(7)])
		case 5:
			if i%3 > 0 {
				break
			}
			config.Store = config.Store.(*store.Memory).Snapshot() // killed: what is not committed is lost
			if i%2 == 0 {
				if err := engine.SetBack(config.Store, clock.Wall()); err != nil && !errors.Is(err, engine.ErrNotAhead) {
					t.Fatal(err)
				}
			}
			e = start(t, config)
		case 6:
			time.Sleep(time.Duration(r.IntN(20_000)) * time.Millisecond)
		}
		result, err := e.Do(t.Context(), op)
		must(t, err)
		see(result)
	}
	checkLatest(t, config.Store)
}
