package raft

import (
	"fmt"
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"
)

// BootstrapState returns the hard state that belongs to the first snapshot of a group.
func BootstrapState() *pb.HardState {
	return &pb.HardState{Term: new(uint64(1)), Vote: new(uint64(0)), Commit: new(uint64(1))}
}

// bootstrapIndex is the index of the first snapshot of a group, before its first entry.
const bootstrapIndex = 1

// Bootstrap returns the first snapshot of a group. first are its members, salt is random,
// and state is the state machine's snapshot of its initial state, which is the same on
// all members.
func Bootstrap(first []Member, salt, state []byte) (_ *pb.Snapshot, groupID uint64, err error) {
	if err := checkFirst(first); err != nil {
		return nil, 0, err
	}
	h := head{members: first, groupID: hashGroup(first, salt), salt: salt}
	conf := &pb.ConfState{}
	for _, m := range first {
		conf.Voters = append(conf.Voters, m.ID)
	}
	slices.Sort(conf.Voters)
	return &pb.Snapshot{
		Data:     append(appendHead(nil, h), state...),
		Metadata: &pb.SnapshotMetadata{Index: new(uint64(bootstrapIndex)), Term: new(uint64(1)), ConfState: conf},
	}, h.groupID, nil
}

// checkFirst checks the first members of a group.
func checkFirst(list []Member) error {
	seen := map[any]bool{}
	for _, m := range list {
		if m.Name == "" || m.ID == 0 || seen[m.Name] || seen[m.ID] {
			return fmt.Errorf("raft: the first members must have distinct names and ids, got %q with id %x", m.Name, m.ID)
		}
		seen[m.Name], seen[m.ID] = true, true
	}
	if len(list) == 0 || len(list) > membersMax {
		return fmt.Errorf("raft: a group must have 1 to %d first members, got %d", membersMax, len(list))
	}
	return nil
}

// headOf returns a snapshot without the state, if its data hold the state.
func headOf(s *pb.Snapshot) (*pb.Snapshot, error) {
	if s == nil {
		return nil, nil
	}
	_, state, err := readSnapshot(s.GetData())
	if err != nil || len(state) == 0 {
		return s, err
	}
	return &pb.Snapshot{Data: slices.Clone(s.Data[:len(s.Data)-len(state)]), Metadata: s.Metadata}, nil
}

// WantsSnapshot reports whether a snapshot should be taken, if the state machine has
// applied the log up to an index.
func (c *Core) WantsSnapshot(applied uint64) bool {
	last := c.memory.snapshot.GetMetadata().GetIndex()
	if c.err != nil || applied <= last || !c.maySnapshotAgain(applied) {
		return false
	}
	return c.memory.snapshotWanted || c.memory.bytes >= snapshotBytes+trailingBytesMax || c.snapshotsDue(applied) > c.snapshotsDue(last)
}

// snapshotsDue returns how many snapshots should have been taken up to an index. The
// numbers differ between nodes, so that they do not all write their states at the same
// time.
func (c *Core) snapshotsDue(index uint64) uint64 {
	every := c.config.SnapshotEvery
	return (index + c.id%every) / every
}

// snapshotRetryTimeouts is the number of election timeouts before a failed snapshot is
// tried again while a member waits for it.
const snapshotRetryTimeouts = 10

// maySnapshotAgain reports whether a snapshot may be tried after the last one failed.
func (c *Core) maySnapshotAgain(applied uint64) bool {
	return applied >= c.snapshotRetryIndex || c.memory.snapshotWanted && c.tick >= c.snapshotRetryTick
}

// SnapshotFailed records that a snapshot at an index failed. The next snapshot is taken
// after some more entries are applied. If a member waits for a snapshot, it is taken
// after some time at the latest, because the group may have no further entries.
func (c *Core) SnapshotFailed(at uint64) {
	c.snapshotRetryIndex = at + max(c.config.SnapshotEvery/8, 1)
	c.snapshotRetryTick = c.tick + int64(snapshotRetryTimeouts*c.config.ElectionTicks)
}

// SnapshotIndex returns the index of the newest snapshot.
func (c *Core) SnapshotIndex() uint64 { return c.memory.snapshot.GetMetadata().GetIndex() }

// Compact removes the entries that a saved snapshot covers. It keeps the newest of these
// entries for slow followers. It also keeps the entries that a follower needs after the
// snapshot that the follower is receiving.
func (c *Core) Compact(s *pb.Snapshot) {
	index := s.GetMetadata().GetIndex()
	if index <= c.memory.snapshot.GetMetadata().GetIndex() {
		return
	}
	c.memory.snapshot, c.memory.snapshotWanted = s, false
	held := index
	for _, s := range c.snapshots {
		held = min(held, s.index)
	}
	to := index
	for bytes := 0; to > c.memory.first && (index-to < c.config.Trailing || to > held); to-- {
		limit := trailingBytesMax
		if to > held {
			limit = heldBytesMax
		}
		if bytes += len(c.memory.entries[to-c.memory.first-1].Data); bytes > limit {
			break
		}
	}
	c.memory.compact(to)
}
