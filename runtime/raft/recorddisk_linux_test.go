package raft_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/topogen/topogen/internal/test/disksim"
	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/raft/wal"
)

// diskRecord is the record of a node on a simulated disk. Its values of Since are 1, 2, 3, …
type diskRecord struct {
	t       *testing.T
	machine *disksim.Machine
	last    uint64   // Since of the record that was written last
	past    []uint64 // Since of the record that was read last, and of the records written after it
	synced  int      // index in past: after a power failure this record or a later one remains
	proven  int      // the same for a disk that lies: the disk did not lie in the write after this record
	refused int
}

// folder opens the folder of the log.
func (d *diskRecord) folder() raft.Disk {
	disk, err := raft.OpenFolder(d.machine.Dir, wal.Options{})
	if err != nil {
		d.t.Fatal(err)
	}
	return disk
}

// write writes the next record.
func (d *diskRecord) write() {
	m, disk := d.machine, d.folder()
	defer func() { _ = disk.Close() }()
	d.last++
	d.past = append(d.past, d.last)
	before := d.synced
	err := m.Run(func() error { return disk.SetRecord(raft.Record{Topology: "test", Name: "n1", ID: 1, Since: d.last}) })
	switch {
	case m.Off || m.BadSync != "":
		if err == nil {
			d.t.Errorf("the sync of %q has failed, and SetRecord returns nil", m.BadSync)
		}
	case err != nil:
		d.t.Fatal(err)
	default:
		d.synced = len(d.past) - 1
		if !m.Lied {
			d.proven = before
		}
	}
}

// read starts the node again, which reads the record and makes it durable.
func (d *diskRecord) read() {
	m := d.machine
	if m.Off {
		m.Restart()
	}
	m.DropCaches()
	disk := d.folder()
	var r raft.Record
	err := m.Read(func() (err error) { r, err = disk.Record(); return err })
	if err := errors.Join(err, disk.Close()); m.Off || m.BadSync+m.BadRead != "" {
		if err == nil {
			d.t.Errorf("the error of %q must be returned", m.BadSync+m.BadRead)
		}
		return
	} else if err != nil {
		if m.Chances.Lie == 0 {
			d.t.Errorf("the disk has not lied: %v", err)
		}
		d.refused++
		m.Wipe()
		d.past, d.synced, d.proven = []uint64{0}, 0, 0
		return
	}
	from := d.synced
	if m.Chances.Lie > 0 {
		from = d.proven
	}
	if !slices.Contains(d.past[from:], r.Since) {
		d.t.Errorf("the record must be one of %d, got %d", d.past[from:], r.Since)
	}
	d.past, d.synced, d.proven = []uint64{r.Since}, 0, 0
}

// TestTheRecordOnASimulatedDisk: after a power failure, and after a sync that fails, a node reads
// the last record that it has written durably, or a newer record. If the disk lies, the node may
// read an older record or refuse the record, but never reads a mixture of records.
func TestTheRecordOnASimulatedDisk(t *testing.T) {
	speed.NoRace(t)
	first, end := speed.Seeds(t, 5, 20, 500)
	for name, c := range map[string]disksim.Chances{
		"power": {Power: 0.1},
		"syncs": {Power: 0.1, Sync: 0.1},
		"reads": {Power: 0.1, Read: 0.1},
		"lies":  {Power: 0.1, Lie: 0.3},
	} {
		t.Run(name, func(t *testing.T) {
			refused := 0
			for seed := first; seed < end; seed++ {
				root := memdir.New(t)
				rng := rand.New(rand.NewPCG(seed, 1))
				d := &diskRecord{t: t, machine: disksim.NewMachine(t, root, rng, c), past: []uint64{0}}
				for range 50 {
					if d.machine.Off || d.machine.BadSync+d.machine.BadRead != "" || rng.IntN(5) == 0 {
						d.read()
					} else {
						d.write()
					}
					if t.Failed() {
						t.Fatal(speed.Repeat(t, seed))
					}
				}
				refused += d.refused
				_ = os.RemoveAll(root)
			}
			t.Logf("%d records were refused", refused)
		})
	}
}
