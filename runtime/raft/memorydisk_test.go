package raft_test

import (
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/raft/wal"
)

// memoryDisk is a raft.Disk on a simulated disk.
type memoryDisk struct {
	*wal.Disk
	record raft.Record
	made   bool
	sync   wal.Sync
	wrap   func(wal.Log) wal.Log // wraps an opened log; nil: none
}

func newMemoryDisk(seed uint64) *memoryDisk { return &memoryDisk{Disk: wal.NewDisk(seed)} }

func (d *memoryDisk) Record() (raft.Record, error)  { return d.record, nil }
func (d *memoryDisk) SetRecord(r raft.Record) error { d.record = r; return nil }
func (d *memoryDisk) HasLog() (bool, error)         { return d.made, nil }
func (d *memoryDisk) Close() error                  { return nil }

func (d *memoryDisk) Open(id wal.Identity) (wal.Log, wal.Stored, error) {
	log, stored, err := d.Disk.Open(id, wal.Options{Sync: d.sync})
	if err != nil {
		return nil, stored, err
	}
	d.made = true
	if d.wrap != nil {
		log = d.wrap(log)
	}
	return log, stored, nil
}

func (d *memoryDisk) RemoveLog() error {
	d.Disk, d.made = wal.NewDisk(1), false
	return nil
}
