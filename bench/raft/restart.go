package raft

import (
	"context"
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/raft/wal"
)

// MakeLog makes the log of a state machine that is the only member of its group: a
// snapshot, followed by the given number of entries with one update each.
func MakeLog(dir string, entries int) (err error) {
	const node, term, each = "alone", 1, 10_000
	state, err := fsm.NewReplicated(countDefinition, fsm.Options{}).AppendSnapshot(nil)
	if err != nil {
		return err
	}
	member := raft.Member{ID: raft.MemberID(node), Name: node}
	first, groupID, err := raft.Bootstrap([]raft.Member{member}, make([]byte, 16), state)
	if err != nil {
		return err
	}
	disk, err := raft.OpenFolder(dir, wal.Options{Sync: wal.None})
	if err != nil {
		return err
	}
	id := wal.Identity{Topology: topology, Group: group, Node: member.ID, Name: node, GroupID: groupID}
	log, _, err := disk.Open(id)
	if err != nil {
		return errors.Join(err, disk.Close())
	}
	defer func() { err = errors.Join(err, log.Close(), disk.Close()) }()
	record := raft.Record{Topology: topology, Group: group, Name: node, ID: member.ID, GroupID: groupID, Since: first.GetMetadata().GetIndex()}
	if err := disk.SetRecord(record); err != nil {
		return err
	}
	if err := errors.Join(log.Save(raft.BootstrapState(), nil, true), log.SaveSnapshot(first)); err != nil {
		return err
	}
	var batch fsm.Batch
	var update count
	var client uint64
	var list []*pb.Entry
	index := first.GetMetadata().GetIndex()
	for i := range entries + 1 {
		index++
		batch.Reset(int64(index))
		if i == 0 {
			batch.OpenNode(1, 1)
			client = index << 20 // as package fsm numbers clients
		} else {
			batch.Update(client, uint64(i), uint64(i), update[:])
		}
		data := append([]byte(nil), batch.Bytes()...)
		list = append(list, &pb.Entry{Index: new(index), Term: new(uint64(term)), Data: data})
		if len(list) == each || i == entries {
			state := &pb.HardState{Term: new(uint64(term)), Vote: new(id.Node), Commit: new(index)}
			if err := log.Save(state, list, true); err != nil {
				return err
			}
			list = list[:0]
		}
	}
	return log.Sync()
}

// Restart opens a state machine with a log of MakeLog, and returns the time until its
// state can be read.
func Restart(dir string, entries int) (took time.Duration, err error) {
	began := time.Now()
	m, err := openMachine(raft.Config{Dir: dir, SnapshotEvery: 1 << 40}) // no snapshot, so that each start finds the same log
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	var n uint64
	if err := m.Read(context.Background(), func(c *counter) { n = c.n }); err != nil {
		return 0, err
	}
	took = time.Since(began)
	if n != uint64(entries) {
		return 0, fmt.Errorf("restored %d updates, want %d", n, entries)
	}
	return took, nil
}
