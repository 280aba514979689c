package core_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/protocol"
)

// rich returns a store with entries in all tables except Meta.
func rich(t testing.TB) *world {
	w := defaults(t).at(1000)
	data := "data"
	value := protocol.Value{Data: &data, Headers: map[string]string{"k": "v"}}
	w.must(protocol.PromiseCreate{ID: "flow", TimeoutAt: 90_000, Param: value, Tags: tags(protocol.TagTarget, worker, protocol.TagBranch, "b", "color", "red")})
	w.must(protocol.PromiseCreate{ID: "later", TimeoutAt: 90_000, Tags: tags(protocol.TagTarget, worker, protocol.TagDelay, "80000")})
	w.create("busy", 90_000, targeted())
	w.acquire("busy", 0)
	w.must(protocol.PromiseCreate{ID: "timer", TimeoutAt: 60_000, Origin: "flow", Tags: tags(protocol.TagTimer, "true", protocol.TagBranch, "b")})
	w.must(protocol.PromiseCreate{ID: "done", TimeoutAt: 90_000, Tags: external()})
	w.must(protocol.PromiseCreate{ID: "open", TimeoutAt: 90_000, Tags: external()})
	for _, id := range []string{"done", "open"} {
		w.must(protocol.RegisterListener{Awaited: id, Address: "poll://uni@c/1"})
	}
	w.acquire("flow", 0)
	w.suspend("flow", 1, "done", "open")
	w.must(protocol.PromiseSettle{ID: "done", State: protocol.Rejected, Value: value})
	w.acquire("flow", 1)
	w.suspend("flow", 2, "open", "timer")
	w.must(protocol.TaskHalt{ID: "flow"})
	w.at(60_000)
	w.must(protocol.ScheduleCreate{ID: "s", Cron: "* * * * *", PromiseID: "{{.timestamp}}", PromiseTimeout: 1000, PromiseTags: targeted()})
	w.must(core.Tick{Limit: 1})
	for t := core.Promises; t < core.TableCount; t++ {
		if w.kv.tables[t].Len() == 0 {
			w.t.Fatalf("the table %s is empty", t)
		}
	}
	return w
}

// everything carries out operations that read all tables, and returns the faults.
func (w *world) everything() []error {
	var faults []error
	before := w.kv.copy()
	before.lenient = true
	ops := []protocol.Operation{
		protocol.PromiseGet{ID: "flow"}, protocol.TaskGet{ID: "flow"}, protocol.TaskGet{ID: "later"}, protocol.ScheduleGet{ID: "s"},
		protocol.PromiseSearch{}, protocol.PromiseSearch{State: protocol.Pending}, protocol.PromiseSearch{Tags: tags("color", "red")},
		protocol.TaskSearch{}, protocol.TaskSearch{State: protocol.TaskHalted}, protocol.ScheduleSearch{}, protocol.DebugSnap{},
		core.Delivered{Promise: "done", Address: "poll://uni@c/1"}, protocol.TaskContinue{ID: "flow"},
		protocol.TaskAcquire{ID: "flow", Version: 2, PID: "w", TTL: 1000}, settle("open"), core.Tick{}, core.Tick{}, core.SetBack{To: 1},
	}
	for _, op := range ops {
		if r, _ := w.c.Step(w.kv, op, w.now); r.Fault != nil {
			faults = append(faults, r.Fault)
			if r.Status != protocol.Internal || r.Error == "" {
				w.t.Errorf("%s: status %d with a fault", op.Kind(), r.Status)
			}
		}
	}
	for _, err := range core.Executes(before, w.now) {
		faults = append(faults, err)
	}
	_, err := core.Offered(before, protocol.TaskRef{ID: "busy", Version: 1})
	faults = append(faults, err)
	for address, err := range core.UnblockAddresses(w.kv, "") {
		faults = append(faults, err)
		for _, err := range core.Unblocks(w.kv, address) {
			faults = append(faults, err)
		}
	}
	core.Next(w.kv, w.now)
	if r, _ := w.c.Step(before, core.Tick{}, core.Instant{Wall: 85_000}); r.Fault != nil { // the delay of "later" ends
		faults = append(faults, r.Fault)
	}
	return slices.DeleteFunc(faults, func(err error) bool { return err == nil })
}

// TestFlippedByte flips bits of each entry, all of them in a long run. Check finds all of them. Operations answer
// with the error, which names an entry, or do not need the entry. Nothing panics.
func TestFlippedByte(t *testing.T) {
	w := rich(t)
	if faults := (&world{t: t, c: w.c, kv: w.kv.copy(), now: core.Instant{Wall: 200_000, Run: 200_000}}).everything(); len(faults) > 0 {
		t.Fatalf("the store is intact: %v", faults)
	}
	detected := map[core.Table]int{}
	flips, stride := 0, speed.Pick(t, 13, 7, 1)
	for table := core.Promises; table < core.TableCount; table++ {
		keys, values := w.kv.tables[table].Keys(), w.kv.tables[table].Values()
		for i, key := range keys {
			whole := key + values[i]
			for bit := 0; bit < 8*len(whole); bit += stride {
				flips++
				damaged := []byte(whole)
				damaged[bit/8] ^= 1 << (bit % 8)
				c := &world{t: t, c: w.c, kv: w.kv.copy(), now: core.Instant{Wall: 200_000, Run: 200_000}}
				c.kv.tables[table].Delete(key)
				c.kv.tables[table].Set(string(damaged[:len(key)]), string(damaged[len(key):]))
				c.kv.lenient = true
				if core.Check(c.kv, c.now) == nil {
					t.Fatalf("bit %d of entry %q of %s is flipped, and Check finds nothing", bit, key, table)
				}
				for _, fault := range c.everything() {
					var corrupt *core.CorruptError
					if !errors.As(fault, &corrupt) || !strings.Contains(fault.Error(), corrupt.Table.String()) || !strings.Contains(fault.Error(), fmt.Sprintf("%q", corrupt.Key)) {
						t.Fatalf("bit %d of entry %q of %s is flipped: %v", bit, key, table, fault)
					}
					if bit >= 8*len(key) { // only a checksum can tell
						detected[table]++
					}
				}
			}
		}
	}
	t.Logf("%d flips; faults by table: %v", flips, detected)
	for table := core.Promises; table < core.TableCount; table++ {
		if detected[table] == 0 && table != core.OutboxAges { // its entries are read a day later
			t.Errorf("no damage to a value of %s was found by an operation", table)
		}
	}
}

// TestMissingEntry removes each entry. Check finds all of them, and nothing panics.
func TestMissingEntry(t *testing.T) {
	w := rich(t)
	for table := core.Promises; table < core.TableCount; table++ {
		for _, key := range w.kv.tables[table].Keys() {
			c := &world{t: t, c: w.c, kv: w.kv.copy(), now: core.Instant{Wall: 200_000, Run: 200_000}}
			c.kv.tables[table].Delete(key)
			c.kv.lenient = true
			// a listener or one of several callbacks leaves no trace; package store counts records
			if violations := core.Check(c.kv, w.now); violations == nil && table != core.Listeners && table != core.Callbacks {
				t.Errorf("entry %q of %s is missing, and Check finds nothing", key, table)
			}
			c.everything()
		}
	}
}

// TestMovedValue puts the value of each entry under the key of another one.
func TestMovedValue(t *testing.T) {
	w := rich(t)
	for table := core.Promises; table < core.TableCount; table++ {
		keys, values := w.kv.tables[table].Keys(), w.kv.tables[table].Values()
		for i := range keys[1:] {
			c := &world{t: t, c: w.c, kv: w.kv.copy(), now: w.now}
			c.kv.tables[table].Set(keys[i], values[i+1])
			c.kv.lenient = true
			if core.Check(c.kv, c.now) == nil {
				t.Errorf("entry %q of %s has the value of another entry, and Check finds nothing", keys[i], table)
			}
			c.everything()
		}
	}
}
