package store

import (
	"iter"
	"sync"
	"unsafe"

	"github.com/tidwall/btree"

	"github.com/topogen/topogen/runtime/durable/core"
)

// Memory is a store without a disk: the content is lost when the process ends.
// A snapshot of it takes constant time.
type Memory struct {
	writer sync.Mutex // held during an Update

	mu      sync.Mutex // protects the fields below
	current *tree
	closed  bool
}

// tree holds the records of all tables. A record is one string, so that it costs one
// allocation.
type tree [Tables]*btree.Map[string, string]

// NewMemory returns an empty store.
func NewMemory() *Memory {
	var t tree
	for i := range t {
		t[i] = btree.NewMap[string, string](0)
	}
	return &Memory{current: &t}
}

// copy returns a tree with the same records. The two trees share their nodes until one of
// them writes. It must not run at the same time as another copy of t.
func (t *tree) copy() *tree {
	var c tree
	for i := range t {
		c[i] = t[i].Copy()
	}
	return &c
}

// Snapshot returns a store with the content of the last commit. It shares memory with m
// until one of them changes, and may be used independently of m.
func (m *Memory) Snapshot() *Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &Memory{current: m.current.copy()}
}

// begin returns the last commit. A writer gets its own copy.
func (m *Memory) begin(writes bool) (*tree, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.closed:
		return nil, ErrClosed
	case writes:
		return m.current.copy(), nil
	}
	return m.current, nil
}

// Update implements [Store].
func (m *Memory) Update(f func(Tx) error) error {
	m.writer.Lock()
	defer m.writer.Unlock()
	t, err := m.begin(true)
	if err != nil {
		return err
	}
	tx := &memoryTx{tree: t, writes: true}
	if err := run(tx, f); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.current = t
	return nil
}

// View implements [Store].
func (m *Memory) View(f func(Tx) error) error {
	t, err := m.begin(false)
	if err != nil {
		return err
	}
	return run(&memoryTx{tree: t}, f)
}

// Close implements [Store].
func (m *Memory) Close() error {
	m.writer.Lock()
	defer m.writer.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return nil
}

// run calls f and returns its error or the error of the transaction.
func run(tx Tx, f func(Tx) error) error {
	if err := f(tx); err != nil {
		return err
	}
	return tx.Err()
}

type memoryTx struct {
	tree    *tree
	writes  bool
	changed bool
	err     error
}

func (tx *memoryTx) Err() error    { return tx.err }
func (tx *memoryTx) Changed() bool { return tx.changed }

func (tx *memoryTx) fail(err error) {
	if tx.err == nil {
		tx.err = err
	}
}

func (tx *memoryTx) Get(t core.Table, key []byte) []byte {
	if err := checkKey(t, key); err != nil {
		tx.fail(err)
		return nil
	}
	value, ok := tx.tree[t].Get(text(key))
	if !ok {
		return nil
	}
	return bytesOf(value)
}

func (tx *memoryTx) Put(t core.Table, key, value []byte) {
	if err := tx.checkWrite(checkRecord(t, key, value)); err != nil {
		return
	}
	record := make([]byte, 0, len(key)+len(value))
	whole := text(append(append(record, key...), value...))
	tx.tree[t].Set(whole[:len(key)], whole[len(key):])
}

func (tx *memoryTx) Delete(t core.Table, key []byte) {
	if err := tx.checkWrite(checkKey(t, key)); err != nil {
		return
	}
	tx.tree[t].Delete(text(key))
}

// checkWrite returns the error of a write, and keeps it.
func (tx *memoryTx) checkWrite(err error) error {
	if !tx.writes {
		err = ErrReadOnly
	}
	if err != nil {
		tx.fail(err)
	} else {
		tx.changed = true
	}
	return err
}

func (tx *memoryTx) Ascend(t core.Table, from []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func([]byte, []byte) bool) {
		if t >= Tables {
			tx.fail(checkKey(t, from))
			return
		}
		tx.tree[t].Ascend(text(from), func(key, value string) bool {
			return yield(bytesOf(key), bytesOf(value))
		})
	}
}

// text returns b as a string without a copy. The caller must not change b while the
// string is used.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// bytesOf returns s as bytes without a copy. No caller may change them: it is the
// contract of [core.KV]. The result is never nil, because nil means that there is no
// value.
func bytesOf(s string) []byte {
	if s == "" {
		return []byte{}
	}
	return unsafe.Slice(unsafe.StringData(s), len(s))
}
