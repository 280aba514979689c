package wal

import "go.etcd.io/raft/v3/raftpb"

// arena makes entries a few hundred at a time: one by one, most of the time to open
// a log would go into allocations.
type arena struct {
	cells []cell
	bytes []byte
}

// cell is an entry with what it points to.
type cell struct {
	entry       raftpb.Entry
	kind        raftpb.EntryType
	term, index uint64
}

const (
	arenaCells = 256      // an entry that lives keeps as many
	arenaBytes = 64 << 10 // or as much data
)

func (a *arena) entry(r entryRecord) *raftpb.Entry {
	if len(a.cells) == 0 {
		a.cells = make([]cell, arenaCells)
	}
	c := &a.cells[0]
	a.cells = a.cells[1:]
	c.kind, c.term, c.index = r.kind, r.term, r.index
	c.entry.Type, c.entry.Term, c.entry.Index = &c.kind, &c.term, &c.index
	c.entry.Data = a.copy(r.data)
	return &c.entry
}

func (a *arena) copy(data []byte) []byte {
	n := len(data)
	if n == 0 {
		return nil
	}
	if n > len(a.bytes) {
		if n > arenaBytes/4 {
			return append([]byte(nil), data...)
		}
		a.bytes = make([]byte, arenaBytes)
	}
	b := a.bytes[:n:n]
	a.bytes = a.bytes[n:]
	copy(b, data)
	return b
}
