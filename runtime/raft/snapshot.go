package raft

import (
	"errors"
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/encoding/protowire"
)

var errSnapshot = errors.New("raft: a snapshot is damaged")

// appendSnapshotHead writes what stands before the state machine's bytes in the
// data of a snapshot: who the members are, behind the length of that.
func appendSnapshotHead(b []byte, list []Member) []byte {
	return protowire.AppendBytes(b, appendMembers(nil, list))
}

// readSnapshot finds the parts of a snapshot's data.
func readSnapshot(b []byte) (list []Member, machine []byte, err error) {
	head, n := protowire.ConsumeBytes(b)
	if n < 0 {
		return nil, nil, errSnapshot
	}
	list, err = readMembers(head)
	return list, b[n:], err
}

// BootstrapState is the hard state that belongs to the snapshot of Bootstrap.
func BootstrapState() *pb.HardState {
	return &pb.HardState{Term: new(uint64(1)), Vote: new(uint64(0)), Commit: new(uint64(1))}
}

// Bootstrap is the snapshot that the log of each member of a new group begins
// with. state is the state machine's own snapshot of its beginning. All members
// must be given the same peers and state.
func Bootstrap(peers map[string]string, state []byte) (*pb.Snapshot, error) {
	m, err := makeMembers(peers)
	if err != nil {
		return nil, err
	}
	conf := &pb.ConfState{}
	for id := range m {
		conf.Voters = append(conf.Voters, id)
	}
	slices.Sort(conf.Voters)
	return &pb.Snapshot{
		Data:     append(appendSnapshotHead(nil, m.list()), state...),
		Metadata: &pb.SnapshotMetadata{Index: new(uint64(1)), Term: new(uint64(1)), ConfState: conf},
	}, nil
}

// SnapshotMachine is the state machine's part of a snapshot.
func SnapshotMachine(s *pb.Snapshot) ([]byte, error) {
	_, machine, err := readSnapshot(s.GetData())
	return machine, err
}

// WantsSnapshot reports whether a snapshot is due, of a state machine that has applied
// the log up to an index.
func (c *Core) WantsSnapshot(applied uint64) bool {
	last := c.memory.snapshot.GetMetadata().GetIndex()
	if c.err != nil || applied <= last || applied < c.notBefore {
		return false
	}
	return c.memory.wanted || c.memory.bytes >= snapshotBytes+trailingBytesMax || c.border(applied) > c.border(last)
}

// border counts the borders up to an index at which snapshots are due. Each node has
// its own, so that not all of them write their state at the same time.
func (c *Core) border(index uint64) uint64 {
	every := c.config.SnapshotEvery
	return (index + c.id%every) / every
}

// SnapshotFailed has the next snapshot, after one at an index that failed, wait for
// some more entries.
func (c *Core) SnapshotFailed(at uint64) {
	c.notBefore = at + max(c.config.SnapshotEvery/8, 1)
}

// SnapshotIndex is the index of the newest snapshot.
func (c *Core) SnapshotIndex() uint64 { return c.memory.snapshot.GetMetadata().GetIndex() }

// Compact forgets the entries that a saved snapshot holds, but for the last ones,
// which a follower that is a little late still gets.
func (c *Core) Compact(s *pb.Snapshot) {
	index := s.GetMetadata().GetIndex()
	if index <= c.memory.snapshot.GetMetadata().GetIndex() {
		return
	}
	c.memory.snapshot, c.memory.wanted = s, false
	to := index
	for bytes := 0; to > c.memory.first && index-to < c.config.Trailing; to-- {
		if bytes += len(c.memory.entries[to-c.memory.first-1].Data); bytes > trailingBytesMax {
			break
		}
	}
	c.memory.compact(to)
}
