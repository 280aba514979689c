package wal

import "go.etcd.io/raft/v3/raftpb"

// arena allocates entries in blocks of a few hundred. With one allocation per entry,
// allocations would take most of the time of opening a log.
type arena struct {
	cells []cell
	bytes []byte
}

// cell is an entry with the fields that it points to.
type cell struct {
	entry       raftpb.Entry
	kind        raftpb.EntryType
	term, index uint64
}

const (
	arenaCells = 256      // one referenced entry keeps the whole block in memory
	arenaBytes = 64 << 10 // the same for blocks of data
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
