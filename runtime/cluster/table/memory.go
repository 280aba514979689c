package table

import (
	"context"
	"sync"
	"time"
)

// Memory is a table in the memory of one process, for tests and for a cluster that runs in
// one process. Each node opens it and has its own replica. Transactions are applied to all
// replicas before they return. Nothing is kept on a disk.
type Memory struct {
	mu       sync.Mutex
	revision uint64
	state    *State
	open     map[*memoryTable]bool
	cut      map[*memoryTable]bool
}

// NewMemory returns an empty table.
func NewMemory() *Memory {
	return &Memory{state: NewState(), open: map[*memoryTable]bool{}, cut: map[*memoryTable]bool{}}
}

// Open returns the table on a node.
func (m *Memory) Open() Table {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := &memoryTable{memory: m, replica: NewReplica()}
	if m.revision > 0 {
		t.replica.Adopt(m.state.copy())
	}
	m.open[t] = true
	return t
}

// copy returns a state that shares nothing with s.
func (s *State) copy() *State {
	c, err := ReadState(s.Append(nil))
	if err != nil {
		panic("table: a state cannot be read again: " + err.Error())
	}
	return c
}

// Cut cuts off the table of a node, or ends that: its transactions fail with ErrUnknown, and its replica does not change.
func (m *Memory) Cut(node Table, cut bool) {
	t := node.(*memoryTable)
	m.mu.Lock()
	defer m.mu.Unlock()
	if cut {
		m.cut[t] = true
		return
	}
	delete(m.cut, t)
	if m.open[t] {
		t.replica.Adopt(m.state.copy())
	}
}

// memoryTable is the table on one node.
type memoryTable struct {
	memory  *Memory
	replica *Replica
}

func (t *memoryTable) Replica() *Replica { return t.replica }

func (t *memoryTable) Txn(ctx context.Context, guards []Guard, changes []Change) (Revision, error) {
	c := &Command{Kind: CommandTxn, Guards: guards, Changes: changes}
	revision, out, err := t.propose(ctx, c)
	if err != nil {
		return Revision{}, err
	}
	return revision, out.Err(c)
}

// propose applies a command to the state and to all replicas. Each of them decodes the
// command itself, so that they share nothing.
func (t *memoryTable) propose(ctx context.Context, c *Command) (Revision, Outcome, error) {
	b, err := AppendCommand(nil, c)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return Revision{}, Outcome{}, err
	}
	m := t.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.open[t] {
		return Revision{}, Outcome{}, ErrClosed
	}
	if m.cut[t] {
		return Revision{}, Outcome{}, ErrUnknown
	}
	m.revision++
	revision, now := Revision{Index: m.revision}, time.Now().UnixNano()
	c, err = ReadCommand(b)
	if err != nil {
		return Revision{}, Outcome{}, err
	}
	out, _ := m.state.Apply(revision, now, c)
	for other := range m.open {
		if m.cut[other] {
			continue
		}
		if c, err = ReadCommand(b); err != nil {
			return Revision{}, Outcome{}, err
		}
		other.replica.Apply(revision, now, c)
	}
	return revision, out, nil
}

// Sync returns at once: every replica has every acknowledged transaction.
func (t *memoryTable) Sync(ctx context.Context) error {
	if err := t.Err(); err != nil {
		return err
	}
	return ctx.Err()
}

func (t *memoryTable) Acquire(ctx context.Context, name, holder string, ttl time.Duration) (*Lease, error) {
	propose := func(ctx context.Context, c *Command) (Outcome, error) {
		_, out, err := t.propose(ctx, c)
		return out, err
	}
	renew := func(ctx context.Context, w Renewal) {
		_, _ = propose(ctx, &Command{Kind: CommandRenew, Renewals: []Renewal{w}})
	}
	return AcquireWith(ctx, t.replica, propose, renew, &Command{Kind: CommandAcquire, Name: name, Holder: holder, TTL: ttl})
}

func (t *memoryTable) Done() <-chan struct{} { return t.replica.Done() }

func (t *memoryTable) Err() error { return t.replica.Err() }

func (t *memoryTable) Close() error {
	t.memory.mu.Lock()
	defer t.memory.mu.Unlock()
	delete(t.memory.open, t)
	t.replica.Fail(ErrClosed)
	return nil
}
