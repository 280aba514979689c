package durable

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/durable/protocol"
)

var dawn = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// TestKeysTakeTurns announces a thousand tasks of one key before one task of each of a
// thousand other keys. Each of the others must run within the first two rounds.
func TestKeysTakeTurns(t *testing.T) {
	const keys = 1000
	q := newQueue(1, 10*keys)
	announce := func(id, key string) {
		if !q.add(protocol.TaskRef{ID: id}, key, Limit{Concurrency: 1}, dawn) {
			t.Fatalf("no room for %s", id)
		}
	}
	for i := range keys {
		announce(fmt.Sprint("busy", i), "busy")
	}
	for i := range keys {
		announce(fmt.Sprint("task", i), fmt.Sprint("key", i))
	}
	others := 0
	for range keys + 2 {
		it, ok := q.next(dawn)
		if !ok {
			t.Fatal("the queue has nothing to run")
		}
		if it.lane.name != "busy" {
			others++
		}
		q.done(it, true, dawn)
	}
	if others != keys {
		t.Errorf("%d of %d keys had a turn while one key had a thousand tasks", others, keys)
	}
}

// TestLanesOfFunctions compares the lane of a function and key with that of a function whose name
// contains both.
func TestLanesOfFunctions(t *testing.T) {
	if a, b := laneName("1", "abcdefghijk"), laneName("abcdefghijk", ""); a == b {
		t.Errorf("two functions share the lane %s", a)
	}
}

// TestEachKeyGetsAnEqualShare lets thousands of keys with very different numbers of tasks
// compete, and compares how often each has run while all of them had tasks.
func TestEachKeyGetsAnEqualShare(t *testing.T) {
	const least = 5
	keys := speed.Pick(t, 300, 3000, 3000)
	q := newQueue(64, 1_000_000)
	random := rand.New(rand.NewPCG(1, 2))
	for k := range keys {
		for i := range least + random.IntN(100) {
			q.add(protocol.TaskRef{ID: fmt.Sprint(k, "/", i)}, fmt.Sprint("key", k), Limit{}, dawn)
		}
	}
	ran := make(map[string]int)
	var running []*item
	for range keys * least {
		if len(running) == 64 {
			i := random.IntN(len(running))
			q.done(running[i], true, dawn)
			running[i] = running[len(running)-1]
			running = running[:len(running)-1]
		}
		it, ok := q.next(dawn)
		if !ok {
			t.Fatal("the queue has nothing to run")
		}
		ran[it.lane.name]++
		running = append(running, it)
	}
	for k := range keys {
		if n := ran[fmt.Sprint("key", k)]; n != least {
			t.Fatalf("key %d ran %d times in %d rounds", k, n, least)
		}
	}
}

func TestConcurrencyOfAKey(t *testing.T) {
	q := newQueue(100, 100)
	limit := Limit{Concurrency: 2}
	for i := range 5 {
		q.add(protocol.TaskRef{ID: fmt.Sprint(i)}, "a", limit, dawn)
	}
	first, _ := q.next(dawn)
	if _, ok := q.next(dawn); !ok {
		t.Fatal("the second of two did not start")
	}
	if it, ok := q.next(dawn); ok {
		t.Fatalf("task %s started beyond the limit", it.ref.ID)
	}
	q.done(first, true, dawn)
	if it, ok := q.next(dawn); !ok || it.ref.ID != "2" {
		t.Fatalf("after one has ended, the next did not start: %v", it)
	}
}

// TestRateOfAKey checks the burst, the refill, that a resumed task needs no token and that
// a start that did not happen gives its token back.
func TestRateOfAKey(t *testing.T) {
	q := newQueue(100, 100)
	limit := Limit{Rate: 3, Period: 3 * time.Second}
	for i := range 10 {
		q.add(protocol.TaskRef{ID: fmt.Sprint(i)}, "a", limit, dawn)
	}
	starts := func(now time.Time) (ids string) {
		for {
			it, ok := q.next(now)
			if !ok {
				return ids
			}
			ids += it.ref.ID
			q.done(it, it.ref.ID != "3", now)
		}
	}
	if got := starts(dawn); got != "012" {
		t.Errorf("at first %q started, want 012", got)
	}
	if at, ok := q.wake(); !ok || !at.Equal(dawn.Add(time.Second)) {
		t.Errorf("the queue wakes at %v (%v)", at, ok)
	}
	q.add(protocol.TaskRef{ID: "resumed", Version: 4}, "a", limit, dawn)
	if got := starts(dawn); got != "resumed" {
		t.Errorf("%q started, want the resumed task alone", got)
	}
	if got := starts(dawn.Add(time.Second)); got != "34" { // 3 was acquired by another worker
		t.Errorf("after a second %q started, want 34", got)
	}
	if got := starts(dawn.Add(time.Hour)); got != "567" {
		t.Errorf("after an hour %q started, want a burst of three", got)
	}
}

// TestQueueForgetsKeys checks that neither keys without tasks nor keys whose rate is unused
// stay in memory, and that a queue that is full says so.
func TestQueueForgetsKeys(t *testing.T) {
	q := newQueue(10, 100)
	now := dawn
	for i := range 10_000 {
		now = now.Add(time.Millisecond)
		q.add(protocol.TaskRef{ID: fmt.Sprint(i)}, fmt.Sprint("key", i), Limit{Rate: 1, Period: 50 * time.Millisecond}, now)
		it, ok := q.next(now)
		if !ok {
			t.Fatal("a new key did not start")
		}
		q.done(it, true, now)
		if len(q.lanes) > 52 {
			t.Fatalf("%d keys are kept", len(q.lanes))
		}
	}
	q.add(protocol.TaskRef{ID: "x"}, "x", Limit{}, now.Add(time.Second))
	if len(q.lanes) != 1 || len(q.later) != 0 {
		t.Errorf("%d keys are kept after a second, %d of them for later", len(q.lanes), len(q.later))
	}
	for i := range 200 {
		if added := q.add(protocol.TaskRef{ID: fmt.Sprint("full", i)}, "full", Limit{}, now); added != (i < 99) {
			t.Fatalf("task %d was added: %v", i, added)
		}
	}
}

// TestFullQueueIsFair fills the queue with the tasks of one key. The tasks of other keys get their
// share of it all the same.
func TestFullQueueIsFair(t *testing.T) {
	q := newQueue(1, 100)
	add := func(key string, i int) bool {
		return q.add(protocol.TaskRef{ID: fmt.Sprint(key, i), Version: int64(i % 2)}, key, Limit{Concurrency: 1}, dawn)
	}
	for i := range 1000 {
		add("busy", i)
	}
	for i := range 60 {
		if add("a", i); q.items[fmt.Sprint("a", i)] == nil != (i >= 50) {
			t.Errorf("task %d of a is in the queue: %t", i, i < 50)
		}
	}
	for k := range 48 {
		if add(fmt.Sprint("key", k), 0) || q.items[fmt.Sprint("key", k, "0")] == nil {
			t.Errorf("the first task of key %d does not take the place of another", k)
		}
	}
	if q.waiting != 100 || len(q.items) != 100 {
		t.Errorf("%d tasks wait, %d by their id", q.waiting, len(q.items))
	}
	counts := make(map[string]int)
	for range 100 {
		it, ok := q.next(dawn)
		if !ok {
			t.Fatal("the queue has nothing to run")
		}
		counts[it.lane.name]++
		q.done(it, true, dawn)
	}
	if counts["busy"] < 22 || counts["a"] < 22 || counts["busy"]+counts["a"] != 52 || len(counts) != 50 {
		t.Errorf("the tasks of the keys are %v", counts)
	}
	if _, ok := q.next(dawn); ok || len(q.lanes) != 0 {
		t.Errorf("the queue has %d keys left", len(q.lanes))
	}
}

// TestQueueModel compares the queue with a model that counts: limits hold, nothing that may
// run waits, and no task is lost or runs twice.
func TestQueueModel(t *testing.T) {
	speed.Checks(t, 40, 100, 10_000)
	rapid.Check(t, func(t *rapid.T) {
		waitingMax := rapid.SampledFrom([]int{3, 10, 50}).Draw(t, "waiting")
		runningMax := rapid.IntRange(1, 5).Draw(t, "running")
		q := newQueue(runningMax, waitingMax)
		limits := map[string]Limit{"a": {}, "b": {Concurrency: 1}, "c": {Rate: 2, Period: 10 * time.Millisecond}, "d": {Concurrency: 2, Rate: 1, Period: 3 * time.Millisecond}}
		now := dawn
		waiting, running := map[string]*item{}, map[string]*item{}
		startsOf := map[string][]time.Time{}
		next := 0
		steps := rapid.IntRange(1, 200).Draw(t, "steps")
		for range steps {
			delayed := slices.ContainsFunc(q.later, func(l *lane) bool { return l.waits() > 0 })
			if at, ok := q.wake(); ok != delayed || ok && !at.Equal(q.later[0].at) {
				t.Fatalf("the queue wakes at %v (%t)", at, ok)
			}
			switch rapid.IntRange(0, 3).Draw(t, "action") {
			case 0:
				key := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "key")
				ref := protocol.TaskRef{ID: fmt.Sprint(next), Version: int64(rapid.IntRange(0, 1).Draw(t, "version"))}
				next++
				added := q.add(ref, key, limits[key], now)
				if added != (len(waiting) < waitingMax) {
					t.Fatalf("added: %v with %d waiting", added, len(waiting))
				}
				if it := q.items[ref.ID]; it != nil {
					waiting[ref.ID] = it
				}
				for id, it := range waiting {
					if q.items[id] != nil {
						continue
					}
					if delete(waiting, id); added || waitingOf(waiting, it.lane.name) < waitingOf(waiting, key) {
						t.Fatalf("task %s of %s was dropped for one of %s", id, it.lane.name, key)
					}
				}
			case 1:
				now = now.Add(time.Duration(rapid.IntRange(0, 5).Draw(t, "ms")) * time.Millisecond)
			case 2:
				for id, it := range running {
					q.done(it, true, now)
					delete(running, id)
					break
				}
			case 3:
				it, ok := q.next(now)
				if !ok {
					for _, w := range waiting {
						if mayRun(w, limits[w.lane.name], running, startsOf[w.lane.name], runningMax, now) {
							t.Fatalf("task %s of %s may run, and the queue returned nothing", w.ref.ID, w.lane.name)
						}
					}
					continue
				}
				if waiting[it.ref.ID] != it || !mayRun(it, limits[it.lane.name], running, startsOf[it.lane.name], runningMax, now) {
					t.Fatalf("task %s of %s must not run", it.ref.ID, it.lane.name)
				}
				delete(waiting, it.ref.ID)
				running[it.ref.ID] = it
				if it.first {
					startsOf[it.lane.name] = append(startsOf[it.lane.name], now)
				}
			}
		}
	})
}

// waitingOf is how many tasks of a key wait.
func waitingOf(waiting map[string]*item, key string) (n int) {
	for _, it := range waiting {
		if it.lane.name == key {
			n++
		}
	}
	return n
}

// mayRun is the definition of the limits: at most Rate starts in any window that is a
// token shorter than the period allows, replayed from the starts.
func mayRun(it *item, limit Limit, running map[string]*item, starts []time.Time, runningMax int, now time.Time) bool {
	same := 0
	for _, r := range running {
		if r.lane.name == it.lane.name {
			same++
		}
	}
	if len(running) >= runningMax || limit.Concurrency > 0 && same >= limit.Concurrency {
		return false
	}
	if limit.Rate == 0 || !it.first {
		return true
	}
	tokens, at := float64(limit.Rate), dawn
	for _, s := range append(starts, now) {
		tokens = min(float64(limit.Rate), tokens+float64(limit.Rate)*float64(s.Sub(at))/float64(limit.Period))
		tokens, at = tokens-1, s
	}
	return tokens >= -1e-6
}

// BenchmarkWake asks for the next wake while many keys are kept for their rate.
func BenchmarkWake(b *testing.B) {
	q := newQueue(1, 10)
	for i := range lanesMax {
		q.add(protocol.TaskRef{ID: fmt.Sprint(i)}, fmt.Sprint("key", i), Limit{Rate: 1, Period: time.Hour}, dawn)
		it, _ := q.next(dawn)
		q.done(it, true, dawn)
	}
	for b.Loop() {
		if _, ok := q.wake(); ok {
			b.Fatal("the queue has nothing to do")
		}
	}
}
