package raft

import (
	"slices"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
)

// memory is the part of the log that the engine reads: the saved entries since the last
// compaction. It implements the engine's Storage. Entries never change, so slices that
// were returned stay valid.
type memory struct {
	state    *pb.HardState
	snapshot *pb.Snapshot  // never nil
	conf     *pb.ConfState // the members when the engine starts
	first    uint64        // index of the entry before entries[0]
	term     uint64        // term of that entry
	entries  []*pb.Entry
	bytes    uint64 // of the data in entries

	membersIndex   uint64 // index of the last change of the members
	snapshotWanted bool   // a follower needs a newer snapshot
}

func newMemory(snapshot *pb.Snapshot, state *pb.HardState, entries []*pb.Entry) *memory {
	m := &memory{state: state}
	m.restore(snapshot)
	m.append(entries)
	return m
}

// restore replaces the content with a snapshot.
func (m *memory) restore(s *pb.Snapshot) {
	if s == nil {
		s = new(pb.Snapshot)
	}
	m.snapshot, m.first, m.term = s, s.GetMetadata().GetIndex(), s.GetMetadata().GetTerm()
	m.entries, m.bytes = nil, 0
	if m.conf = s.GetMetadata().GetConfState(); m.conf == nil {
		m.conf = new(pb.ConfState)
	}
}

// append adds entries. From the index of the first one on, they replace existing entries.
func (m *memory) append(entries []*pb.Entry) {
	for len(entries) > 0 && entries[0].GetIndex() <= m.first {
		entries = entries[1:] // already compacted
	}
	if len(entries) == 0 {
		return
	}
	m.truncate(entries[0].GetIndex())
	m.entries = append(m.entries, entries...)
	for _, e := range entries {
		m.bytes += uint64(len(e.Data))
	}
}

// truncate removes the entries from an index on.
func (m *memory) truncate(from uint64) {
	keep := from - m.first - 1
	if keep >= uint64(len(m.entries)) {
		return
	}
	for _, e := range m.entries[keep:] {
		m.bytes -= uint64(len(e.Data))
	}
	m.entries = m.entries[:keep:keep] // a later append must not change slices that were returned
}

// compact removes the entries up to an index.
func (m *memory) compact(to uint64) {
	if to <= m.first || to > m.last() {
		return
	}
	n := to - m.first
	for _, e := range m.entries[:n] {
		m.bytes -= uint64(len(e.Data))
	}
	m.term = m.entries[n-1].GetTerm()
	m.first = to
	m.entries = slices.Clone(m.entries[n:])
}

func (m *memory) last() uint64 { return m.first + uint64(len(m.entries)) }

// InitialState is called once, when the engine starts.
func (m *memory) InitialState() (*pb.HardState, *pb.ConfState, error) {
	return m.state, m.conf, nil
}

// Entries returns the entries from lo on, before hi, up to a total of bytesMax, but at
// least one.
func (m *memory) Entries(lo, hi, bytesMax uint64) ([]*pb.Entry, error) {
	if lo <= m.first {
		return nil, raft.ErrCompacted
	}
	if hi > m.last()+1 || lo >= hi {
		return nil, raft.ErrUnavailable
	}
	list := m.entries[lo-m.first-1 : hi-m.first-1]
	size := uint64(0)
	for i, e := range list {
		if size += uint64(len(e.Data)) + entryOverhead; size > bytesMax && i > 0 {
			list = list[:i]
			break
		}
	}
	return list[:len(list):len(list)], nil
}

// entryOverhead is the most that index, term and tags of an entry take in a message.
const entryOverhead = 34

func (m *memory) Term(i uint64) (uint64, error) {
	switch {
	case i < m.first:
		return 0, raft.ErrCompacted
	case i == m.first:
		return m.term, nil
	case i > m.last():
		return 0, raft.ErrUnavailable
	}
	return m.entries[i-m.first-1].GetTerm(), nil
}

func (m *memory) LastIndex() (uint64, error)  { return m.last(), nil }
func (m *memory) FirstIndex() (uint64, error) { return m.first + 1, nil }

// Snapshot returns the newest snapshot, for a follower. A member that joined after the
// snapshot was taken needs a newer snapshot, because the older snapshot does not list it
// as a member.
func (m *memory) Snapshot() (*pb.Snapshot, error) {
	if m.snapshot.GetMetadata().GetIndex() < m.membersIndex {
		m.snapshotWanted = true
		return nil, raft.ErrSnapshotTemporarilyUnavailable
	}
	return m.snapshot, nil
}
