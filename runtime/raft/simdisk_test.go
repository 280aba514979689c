package raft_test

import (
	"errors"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/raft/wal"
)

// simDisk is the disk of a node. The node may crash in its calls.
type simDisk struct {
	*memoryDisk
	n *node
}

func (d *simDisk) SetRecord(r raft.Record) error {
	if err := d.n.crashPoint(true); err != nil { // a crash before the record is saved
		return err
	}
	return errors.Join(d.memoryDisk.SetRecord(r), d.n.crashPoint(false))
}

func (d *simDisk) Open(id wal.Identity) (wal.Log, wal.Stored, error) {
	if err := d.n.crashPoint(true); err != nil {
		return nil, wal.Stored{}, err
	}
	log, stored, err := d.memoryDisk.Open(id)
	if err != nil && d.n.failing == nil {
		d.n.w.fail("%s must be able to open its log, got: %v", d.n.name, err)
	}
	return &simLog{log, d.n}, stored, errors.Join(err, d.n.crashPoint(false))
}

func (d *simDisk) RemoveLog() error {
	d.n.w.count("unused log removed")
	return errors.Join(d.memoryDisk.RemoveLog(), d.n.crashPoint(false))
}

// simLog is the log of a node. The node may crash before and after each call.
type simLog struct {
	wal.Log
	n *node
}

func (l *simLog) Save(state *pb.HardState, entries []*pb.Entry, sync bool) error {
	l.n.w.logSave(l.n, state, entries, sync)
	if l.n.onSave != nil {
		l.n.onSave(len(entries), sync)
	}
	return errors.Join(l.n.crashPoint(true), l.Log.Save(state, entries, sync), l.n.crashPoint(false))
}

func (l *simLog) SaveSnapshot(s *pb.Snapshot) error {
	l.n.w.logEvent("%s saves snapshot %d", l.n.name, s.GetMetadata().GetIndex())
	return errors.Join(l.n.crashPoint(true), l.Log.SaveSnapshot(s), l.n.crashPoint(false))
}

func (l *simLog) CreateSnapshot() (wal.SnapshotWriter, error) {
	l.n.bodies++
	if l.n.full == "create" {
		return nil, errNoRoom
	}
	w, err := l.Log.CreateSnapshot()
	if err != nil {
		return nil, err
	}
	return &simWriter{w, l.n}, l.n.crashPoint(true)
}

// simWriter writes the body of a snapshot. The node may crash in its calls.
type simWriter struct {
	wal.SnapshotWriter
	n *node
}

func (w *simWriter) Write(b []byte) (int, error) {
	if w.n.full == "write" {
		return 0, errNoRoom
	}
	if err := w.n.crashPoint(true); err != nil {
		return 0, err
	}
	return w.SnapshotWriter.Write(b)
}

func (w *simWriter) Seal(s *pb.Snapshot) error {
	if w.n.full == "seal" {
		return errNoRoom
	}
	return errors.Join(w.n.crashPoint(true), w.SnapshotWriter.Seal(s), w.n.crashPoint(false))
}

func (w *simWriter) Commit(s *pb.Snapshot) error {
	w.n.w.logEvent("%s saves snapshot %d", w.n.name, s.GetMetadata().GetIndex())
	return errors.Join(w.n.crashPoint(true), w.SnapshotWriter.Commit(s), w.n.crashPoint(false))
}
