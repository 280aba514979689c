package wal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"google.golang.org/protobuf/proto"

	"go.etcd.io/raft/v3/raftpb"
)

// Disk is a simulated disk with one log. A crash loses unsynced data, and methods make
// the disk fail or hang. The same seed and the same calls give the same results. It
// starts no goroutines, so a log in mode Interval syncs only when Sync is called.
type Disk struct {
	mu       sync.Mutex
	rng      *rand.Rand
	made     bool // the disk has a log
	id       Identity
	records  []diskRecord
	durable  int      // how many of the records survive a crash
	log      *diskLog // the open log; nil: closed
	failSync bool     // the next sync fails
	hung     bool
	flipped  bool // a bit was flipped, so the log cannot be opened
}

// diskRecord is a state, an entry or a snapshot; the other fields are nil.
type diskRecord struct {
	state    *hardState
	entry    *raftpb.Entry
	snapshot *diskSnapshot
}

// The errors of a simulated disk.
var (
	errCrashed  = errors.New("wal: the simulated host has crashed")
	errFailSync = errors.New("wal: a sync of the simulated disk failed")
)

// NewDisk returns an empty disk.
func NewDisk(seed uint64) *Disk {
	return &Disk{rng: rand.New(rand.NewPCG(seed, 0))}
}

// Open opens the log of the disk, as the function [Open] opens a log in files. It
// ignores Interval and Logger.
func (d *Disk) Open(id Identity, o Options) (Log, Stored, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	o, err := o.withDefaults()
	switch {
	case err != nil:
		return nil, Stored{}, err
	case d.log != nil:
		return nil, Stored{}, fmt.Errorf("wal: the simulated disk is %w", ErrInUse)
	case d.made && !d.id.same(id):
		return nil, Stored{}, &IdentityError{Dir: "the simulated disk", Got: d.id, Want: id}
	case d.flipped:
		return nil, Stored{}, &DamageError{File: "the simulated disk", Offset: d.rng.Int64N(int64(len(d.records))*64 + 64), Reason: "a bit was flipped"}
	}
	stored, sum, err := d.read()
	if err != nil {
		return nil, Stored{}, err
	}
	d.records = append(d.records, diskRecord{state: new(sum.state)})
	d.durable = len(d.records)
	stored.Fresh = !d.made
	d.made, d.id = true, id
	d.log = &diskLog{disk: d, sync: o.Sync, summary: sum}
	return d.log, stored, nil
}

func (d *Disk) read() (Stored, summary, error) {
	var c contents
	var newest *diskSnapshot
	for _, r := range d.records {
		switch {
		case r.state != nil:
			c.state = *r.state
		case r.entry != nil:
			if err := c.entry(r.entry); err != nil {
				return Stored{}, summary{}, fmt.Errorf("wal: the simulated disk: %w", err)
			}
		default:
			c.snapshot(positionOf(r.snapshot.head), true)
			newest = r.snapshot
		}
	}
	c.state = c.initialState()
	s := Stored{State: c.state.proto(), Entries: append([]*raftpb.Entry(nil), c.entries...)}
	if newest != nil {
		r := newest.open()
		s.Snapshot, s.BodySize = r.Snapshot, r.Size
		s.open = func() (*SnapshotReader, error) { return newest.open(), nil }
	}
	return s, c.summary, nil
}

func positionOf(s *raftpb.Snapshot) position {
	return position{s.GetMetadata().GetIndex(), s.GetMetadata().GetTerm()}
}

// Crash simulates a power failure. The disk keeps all synced records and a random number
// of the unsynced ones, the oldest first. Every later call of the open log returns an
// error.
func (d *Disk) Crash() {
	d.mu.Lock()
	defer d.mu.Unlock()
	kept := d.durable
	if n := len(d.records) - d.durable; n > 0 {
		kept += d.rng.IntN(n + 1)
	}
	clear(d.records[kept:])
	d.records, d.durable = d.records[:kept], kept
	d.failSync, d.hung = false, false
	if d.log != nil {
		d.log.err = errCrashed
		d.log = nil
	}
}

// FailSync makes the next sync fail, once. The unsynced data stays unsynced.
func (d *Disk) FailSync() { d.set(func() { d.failSync = true }) }

// Hang marks the disk as hanging, or as responding again. Calls of the log do not block
// on a hanging disk. The simulation must check [Disk.Hung] before it calls the log.
func (d *Disk) Hang(hung bool) { d.set(func() { d.hung = hung }) }

// Hung reports whether the disk hangs.
func (d *Disk) Hung() (hung bool) {
	d.set(func() { hung = d.hung })
	return hung
}

// Flip flips a bit on the disk. The log cannot be opened any more.
func (d *Disk) Flip() { d.set(func() { d.flipped = true }) }

func (d *Disk) set(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
}

// flush does a sync. The caller holds the lock.
func (d *Disk) flush() error {
	if d.failSync {
		d.failSync = false
		return errFailSync
	}
	d.durable = len(d.records)
	return nil
}

// diskLog is the log of a Disk. The lock of the Disk guards it.
type diskLog struct {
	disk    *Disk
	sync    Sync
	summary summary
	err     error // of the first failed call; later calls return it
}

func (l *diskLog) Save(state *raftpb.HardState, entries []*raftpb.Entry, sync bool) error {
	return l.do(func(d *Disk) error {
		b, err := newBatch(&l.summary, state, entries)
		if err != nil {
			return err
		}
		before := b.stateBefore()
		if before != l.summary.state {
			d.records = append(d.records, diskRecord{state: &before})
		}
		for _, e := range b.entries {
			d.records = append(d.records, diskRecord{entry: e})
		}
		if before != b.state {
			d.records = append(d.records, diskRecord{state: &b.state})
		}
		l.summary.add(b)
		if sync && l.sync == Always {
			return d.flush()
		}
		return nil
	})
}

func (l *diskLog) SaveSnapshot(s *raftpb.Snapshot) error {
	return l.saveSnapshot(&diskSnapshot{head: s, size: -1})
}

func (l *diskLog) saveSnapshot(s *diskSnapshot) error {
	return l.do(func(d *Disk) error {
		at, err := checkSnapshot(&l.summary, s.head)
		if err != nil || at == l.summary.base {
			return err
		}
		l.summary.state = l.summary.state.afterSnapshot(at)
		l.summary.snapshot(at, true)
		s = &diskSnapshot{head: proto.CloneOf(s.head), body: s.body, size: s.size}
		d.records = append(d.records, diskRecord{snapshot: s}, diskRecord{state: new(l.summary.state)})
		if err := d.flush(); err != nil {
			return err
		}
		d.compact()
		return nil
	})
}

// compact removes the records that the older of the newest two snapshots replaces.
func (d *Disk) compact() {
	snapshots := 0
	for i := len(d.records) - 1; i > 0; i-- {
		if d.records[i].snapshot == nil {
			continue
		}
		if snapshots++; snapshots == snapshotsKept {
			d.compactTo(positionOf(d.records[i].snapshot.head), i)
			return
		}
	}
}

// compactTo removes, from the records before the older snapshot at i, the entries that
// the snapshot includes and the entries that were replaced.
func (d *Disk) compactTo(older position, i int) {
	var c contents
	for _, r := range d.records[:i] {
		switch {
		case r.state != nil:
			c.state = *r.state
		case r.entry != nil:
			_ = c.entry(r.entry) // Save has checked it
		default:
			c.snapshot(positionOf(r.snapshot.head), true)
		}
	}
	c.snapshot(older, true)
	kept := []diskRecord{{state: new(c.state)}, d.records[i]}
	for _, e := range c.entries {
		kept = append(kept, diskRecord{entry: e})
	}
	d.records = append(kept, d.records[i+1:]...)
	d.durable = len(d.records)
}

func (l *diskLog) Sync() error {
	return l.do(func(d *Disk) error { return d.flush() })
}

func (l *diskLog) Close() error {
	l.disk.mu.Lock()
	defer l.disk.mu.Unlock()
	if l.disk.log != l {
		return nil
	}
	l.disk.log = nil
	err := l.err
	if err == nil {
		err = l.disk.flush()
	}
	l.err = ErrClosed
	return err
}

// do calls f unless the log has failed, and stores its error.
func (l *diskLog) do(f func(*Disk) error) error {
	l.disk.mu.Lock()
	defer l.disk.mu.Unlock()
	if l.err != nil {
		return l.err
	}
	err := f(l.disk)
	if err != nil && !errors.Is(err, ErrInvalid) {
		l.err = fmt.Errorf("%w: %w", ErrFailed, err)
		return l.err
	}
	return err
}
