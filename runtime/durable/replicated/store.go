package replicated

import (
	"bytes"
	"context"
	"fmt"
	"sync"

	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/store"
	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/raft"
)

type machine = raft.Machine[state, entry, uint64]

// replica is the store of the engine that began an epoch. Its commits are entries of the
// log. It fails for good when the epoch has ended, or when the outcome of a commit is not
// known.
type replica struct {
	machine *machine
	epoch   uint64
	ctx     context.Context // ends when this node does not lead any longer
	end     context.CancelFunc

	writer sync.Mutex // held during an Update

	mu     sync.Mutex
	failed error
	closed bool
}

var _ store.Store = (*replica)(nil)

// begin begins an epoch.
func begin(ctx context.Context, m *machine, url string) (*replica, error) {
	ctx, end := context.WithCancel(ctx)
	r := &replica{machine: m, ctx: ctx, end: end}
	result, err := r.propose(entry{begin: url})
	if err != nil {
		end()
		return nil, err
	}
	r.epoch = result
	return r, nil
}

// propose proposes an entry, and waits until this node has applied it.
func (r *replica) propose(e entry) (uint64, error) {
	result, err := r.machine.ProposeResult(r.ctx, e)
	if err != nil {
		return 0, err
	}
	return result.Value, r.machine.Wait(r.ctx, result.Index)
}

// Update implements store.Store.
func (r *replica) Update(f func(store.Tx) error) error {
	r.writer.Lock()
	defer r.writer.Unlock()
	if err := r.state(); err != nil {
		return err
	}
	// All earlier commits of this epoch are applied here, and no other engine commits in
	// this epoch. So the tables of this node are the newest ones.
	var tables *store.Memory
	if err := r.machine.Stale(func(s *state) { tables = s.snapshot() }); err != nil {
		return r.fail(err)
	}
	var writes []write
	err := tables.Update(func(tx store.Tx) error {
		t := &transaction{Tx: tx, places: make(map[string]int)}
		err := f(t)
		writes = t.writes
		return err
	})
	if err != nil || len(writes) == 0 {
		return err
	}
	for _, e := range split(r.epoch, writes) {
		if _, err := r.propose(e); err != nil {
			return r.fail(err)
		}
	}
	return nil
}

// View implements store.Store.
func (r *replica) View(f func(store.Tx) error) error {
	if err := r.state(); err != nil {
		return err
	}
	var tables *store.Memory
	if err := r.machine.Read(r.ctx, func(s *state) { tables = s.snapshot() }); err != nil {
		return r.fail(err)
	}
	return tables.View(f)
}

// Close implements store.Store. It does not close the machine.
func (r *replica) Close() error {
	r.end()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	return nil
}

func (r *replica) state() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return store.ErrClosed
	}
	return r.failed
}

// fail ends the use of the replica.
func (r *replica) fail(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return store.ErrClosed
	}
	if r.failed == nil {
		if !fsm.OutcomeKnown(err) {
			err = fmt.Errorf("the outcome is not known: %w", err)
		}
		r.failed = fmt.Errorf("%w: %w", store.ErrFailed, err)
	}
	return r.failed
}

// transaction records the writes of a transaction: the last one for each record.
type transaction struct {
	store.Tx
	writes []write
	places map[string]int // of the writes, by table and key
}

func (t *transaction) Put(table core.Table, key, value []byte) {
	t.Tx.Put(table, key, value)
	t.record(table, key, append([]byte{}, value...))
}

func (t *transaction) Delete(table core.Table, key []byte) {
	t.Tx.Delete(table, key)
	t.record(table, key, nil)
}

func (t *transaction) record(table core.Table, key, value []byte) {
	place := string(append([]byte{byte(table)}, key...))
	if i, ok := t.places[place]; ok {
		t.writes[i].value = value
		return
	}
	t.places[place] = len(t.writes)
	t.writes = append(t.writes, write{table, bytes.Clone(key), value})
}
