package raft

import (
	"errors"
	"fmt"
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

// WantsSnapshot reports whether enough was applied since the last snapshot.
func (c *Core) WantsSnapshot() bool {
	since := c.applied - c.memory.snapshot.GetMetadata().GetIndex()
	return c.err == nil && since > 0 && c.applied >= c.notBefore && (since >= c.config.SnapshotEvery || c.memory.wanted || c.memory.bytes >= snapshotBytes+trailingBytesMax)
}

// Snapshot makes a snapshot of what is applied; appendState appends the state
// machine's part of it. The driver saves it, and calls Compact then.
func (c *Core) Snapshot(appendState func([]byte) ([]byte, error)) (*pb.Snapshot, error) {
	if c.err != nil {
		return nil, c.err
	}
	term, err := c.memory.Term(c.applied)
	if err != nil {
		return nil, fmt.Errorf("raft: a snapshot at %d: %w", c.applied, err)
	}
	data, err := appendState(appendSnapshotHead(nil, c.members.list()))
	if err != nil {
		c.notBefore = c.applied + max(c.config.SnapshotEvery/8, 1)
		return nil, fmt.Errorf("raft: a snapshot at %d: %w", c.applied, err)
	}
	return &pb.Snapshot{
		Data:     data,
		Metadata: &pb.SnapshotMetadata{Index: new(c.applied), Term: new(term), ConfState: c.conf},
	}, nil
}

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
