package edges

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/local"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/store"
	"github.com/topogen/topogen/runtime/piper"
)

// Memory is a store in memory for tests. It outlives the topologies that use it, as a disk
// does, and it can let them crash:
//
//	store := edges.NewMemory()
//	for crash := 0; ; crash++ {
//		store.CrashAfter(crash)
//		t, err := New(Processors{}, pool.DurableMemory(store))
//		steps := t.Stepper(1)
//		… // send, and let the topology run
//		if err := steps.Run(); !store.Crashed() {
//			break // all operations were carried out
//		}
//	}
//
// After a crash nothing that the topology does reaches the store, and no handler begins a step.
// The next topology that uses the store continues its work, as the next process would.
type Memory struct {
	server   *local.Server
	attached int // how many topologies have used the store

	mu         sync.Mutex
	now        func() time.Time
	last       time.Time // the latest time that was used
	left       int       // operations until the crash; -1: none comes
	crashed    bool
	operations int
	connection protocol.Connection // of the topology that uses the store
	kept       store.Store         // for a topology that runs without a Stepper
}

// ErrCrashed is the error of operations after a crash.
var ErrCrashed = errors.New("durable: the store has crashed, as Memory.CrashAfter demands")

// NewMemory makes an empty store.
func NewMemory() *Memory {
	m := &Memory{left: -1, last: piper.Epoch()}
	server, err := local.New(core.Config{}, m.time)
	if err != nil {
		panic(err) // the configuration is the default
	}
	m.server = server
	return m
}

// CrashAfter makes the next topology that uses the store crash after so many operations: reads
// and writes of its senders and handlers. A negative number means never.
func (m *Memory) CrashAfter(operations int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left = operations
}

// Crashed reports whether the topology that used the store last has crashed.
func (m *Memory) Crashed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.crashed
}

// Operations is how many operations all topologies have carried out.
func (m *Memory) Operations() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.operations
}

// attach lets a topology use the store, in place of the one before. It returns the time of the
// store.
func (m *Memory) attach(now func() time.Time) time.Time {
	m.mu.Lock()
	c := m.connection
	m.connection, m.crashed = nil, false
	m.attached++
	started := m.last
	m.now = nil // until the clock of the Stepper is set
	m.mu.Unlock()
	if c != nil {
		c.Close()
	}
	m.mu.Lock()
	m.now = now
	m.mu.Unlock()
	return started
}

// time is the time of the store. It never goes back.
func (m *Memory) time() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.now != nil {
		if now := m.now(); now.After(m.last) {
			m.last = now
		}
	}
	return m.last
}

// admit counts operations. It returns how many of them happen before the crash.
func (m *Memory) admit(n int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.crashed:
		return 0
	case m.left >= 0 && n > m.left:
		n, m.crashed = m.left, true
		m.left = -1 // the next topology does not crash, unless the test says so
	case m.left >= 0:
		m.left -= n
	}
	m.operations += n
	return n
}

// Do carries out an operation.
func (m *Memory) Do(ctx context.Context, op protocol.Operation) (protocol.Result, error) {
	results, err := m.DoAll(ctx, []protocol.Operation{op})
	if err != nil {
		return protocol.Result{}, err
	}
	return results[0], nil
}

// DoAll carries out several operations. A crash may come between two of them.
func (m *Memory) DoAll(ctx context.Context, ops []protocol.Operation) ([]protocol.Result, error) {
	n := m.admit(len(ops))
	results, err := m.server.DoAll(ctx, ops[:n])
	if err == nil && n < len(ops) {
		err = ErrCrashed
	}
	return results, err
}

// Connect connects the worker of the topology.
func (m *Memory) Connect(group, pid string) (protocol.Connection, error) {
	c, err := m.server.Connect(group, pid)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.connection = c
	return c, nil
}

// step processes timers that are due. After a crash the time of the store stands still.
func (m *Memory) step() bool { return !m.Crashed() && m.server.Step() }

// next is the time at which step has something to do.
func (m *Memory) next() (time.Time, bool) {
	if m.Crashed() {
		return time.Time{}, false
	}
	return m.server.Next()
}

// hasTimer reports whether a timer runs.
func (m *Memory) hasTimer() bool {
	if m.Crashed() {
		return false
	}
	r, err := m.server.Do(context.Background(), protocol.PromiseSearch{State: protocol.Pending, Tags: map[string]string{protocol.TagTimer: "true"}, Limit: 1})
	return err == nil && len(r.Promises) > 0
}

// unfinished are the tasks that are pending or acquired.
func (m *Memory) unfinished() map[string]bool {
	ids := make(map[string]bool)
	for _, state := range []protocol.TaskState{protocol.TaskPending, protocol.TaskAcquired} {
		search := protocol.TaskSearch{State: state, Limit: protocol.MaxSearch}
		for {
			r, err := m.server.Do(context.Background(), search)
			if err != nil {
				return ids
			}
			for _, task := range r.Tasks {
				ids[task.ID] = true
			}
			if search.Cursor = r.Cursor; search.Cursor == "" {
				break
			}
		}
	}
	return ids
}

// isUnfinished reports whether a task is pending or acquired.
func (m *Memory) isUnfinished(id string) bool {
	r, err := m.server.Do(context.Background(), protocol.TaskGet{ID: id})
	return err == nil && r.Task != nil && (r.Task.State == protocol.TaskPending || r.Task.State == protocol.TaskAcquired)
}

// running is the store of a topology that runs without a Stepper. It outlives the engine, which
// closes it.
func (m *Memory) running() store.Store {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kept == nil {
		m.kept = store.NewMemory()
	}
	return unclosed{m.kept}
}

type unclosed struct{ store.Store }

func (unclosed) Close() error { return nil }
