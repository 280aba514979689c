package core_test

import (
	"fmt"
	"iter"
	"testing"

	"github.com/tidwall/btree"

	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/protocol"
)

// memory is a KV without transactions. It counts writes, and checks what the core promises
// to a KV.
type memory struct {
	tables     [core.TableCount]*btree.Map[string, string]
	writes     int
	iterations int  // that have not ended
	written    int  // bytes
	accesses   int  // entries that were read or written
	lenient    bool // keys that do not exist may be deleted
}

func newMemory() *memory {
	m := &memory{}
	for t := range m.tables {
		m.tables[t] = btree.NewMap[string, string](0)
	}
	return m
}

func (m *memory) copy() *memory {
	c := &memory{}
	for t := range m.tables {
		c.tables[t] = m.tables[t].Copy()
	}
	return c
}

func (m *memory) Get(t core.Table, key []byte) []byte {
	checkKey(key)
	m.accesses++
	value, ok := m.tables[t].Get(string(key))
	if !ok {
		return nil
	}
	return []byte(value)
}

func (m *memory) Put(t core.Table, key, value []byte) {
	m.write(key)
	m.written += len(key) + len(value)
	m.tables[t].Set(string(key), string(value))
}

func (m *memory) Delete(t core.Table, key []byte) {
	m.write(key)
	if _, ok := m.tables[t].Delete(string(key)); !ok && !m.lenient {
		panic(fmt.Sprintf("the core deleted the key %q of %s, which does not exist", key, t))
	}
}

func (m *memory) write(key []byte) {
	checkKey(key)
	m.writes++
	m.accesses++
	if m.iterations > 0 {
		panic("the core wrote during an iteration")
	}
}

func checkKey(key []byte) {
	if len(key) == 0 || len(key) > 16<<10 {
		panic(fmt.Sprintf("the core used a key of %d bytes", len(key)))
	}
}

func (m *memory) Ascend(t core.Table, from []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func([]byte, []byte) bool) {
		m.iterations++
		defer func() { m.iterations-- }()
		m.tables[t].Ascend(string(from), func(key, value string) bool {
			m.accesses++
			return yield([]byte(key), []byte(value))
		})
	}
}

// world is a store with a clock for a test.
type world struct {
	t   testing.TB
	c   *core.Core
	kv  *memory
	now core.Instant
}

func newWorld(t testing.TB, config core.Config) *world {
	c, err := core.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return &world{t: t, c: c, kv: newMemory()}
}

// at sets both clocks.
func (w *world) at(ms int64) *world {
	w.now = core.Instant{Wall: ms, Run: ms}
	return w
}

// do carries out an operation and checks all invariants after it, and that an operation
// that was refused or only reads has written nothing.
func (w *world) do(op protocol.Operation) (protocol.Result, []core.Effect) {
	w.t.Helper()
	before := w.kv.writes
	r, effects := w.c.Step(w.kv, op, w.now)
	if r.Fault != nil {
		w.t.Fatalf("%s: %v", op.Kind(), r.Fault)
	}
	if (r.Status >= 400 || readOnly(op)) && w.kv.writes != before {
		w.t.Fatalf("%s has written %d times although it has status %d", op.Kind(), w.kv.writes-before, r.Status)
	}
	if op, ok := op.(protocol.DebugTick); ok {
		w.at(op.Time)
	}
	if violations := core.Check(w.kv, w.now); violations != nil {
		w.t.Fatalf("after %s: %v", op.Kind(), violations)
	}
	return r, effects
}

func readOnly(op protocol.Operation) bool {
	switch op.(type) {
	case protocol.PromiseGet, protocol.PromiseSearch, protocol.TaskGet, protocol.TaskSearch, protocol.ScheduleGet,
		protocol.ScheduleSearch, protocol.DebugSnap:
		return true
	}
	return false
}
