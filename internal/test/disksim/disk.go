package disksim

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
)

// Sizes of what a disk and an operating system write at once.
const (
	SectorBytes = 512
	PageBytes   = 4096
)

// A Disk is the disk below a directory. One goroutine may use it.
type Disk struct {
	dir    string
	rng    *rand.Rand
	faults Faults
	lies   int
	files  []*file
}

// A file has a name in memory, and maybe another name on the disk. Either is "" if there is
// none.
type file struct {
	info     os.FileInfo
	name     string
	diskName string
	cached   content // as the system returns it
	onDisk   content
	pending  []write // since the last sync, in order
}

// A write is a change of a file. Without data, at is its new length.
type write struct {
	at   int
	data []byte
}

// New returns the disk below a directory, which has all that is in the directory.
func New(dir string, rng *rand.Rand) *Disk {
	d := &Disk{dir: dir, rng: rng}
	d.Observe()
	for _, f := range d.files {
		f.sync()
	}
	d.SyncDir()
	return d
}

// SetFaults changes what syncs lose from now on.
func (d *Disk) SetFaults(f Faults) { d.faults = f }

// Move notes that the directory has got another name.
func (d *Disk) Move(dir string) { d.dir = dir }

// Observe compares the directory with the state that the disk knows. Differences are
// writes that are not synced. It panics if a file cannot be read.
func (d *Disk) Observe() {
	entries, err := os.ReadDir(d.dir)
	check(err)
	found := map[*file]bool{}
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		check(err)
		f := d.inode(info)
		f.name = e.Name()
		f.observe(readFile(filepath.Join(d.dir, f.name)))
		found[f] = true
	}
	d.files = slices.DeleteFunc(d.files, func(f *file) bool {
		if !found[f] {
			f.name = ""
		}
		return f.name == "" && f.diskName == ""
	})
}

// inode returns the file with an identity.
func (d *Disk) inode(info os.FileInfo) *file {
	for _, f := range d.files {
		if f.name != "" && os.SameFile(f.info, info) {
			return f
		}
	}
	f := &file{info: info}
	d.files = append(d.files, f)
	return f
}

// named returns the file that has a name in memory. It panics if there is none.
func (d *Disk) named(name string) *file {
	for _, f := range d.files {
		if f.name == name {
			return f
		}
	}
	panic(fmt.Sprintf("disksim: %s has no file %q", d.dir, name))
}

// observe notes the sectors that differ from the content before.
func (f *file) observe(b []byte) {
	if len(b) != f.cached.length {
		f.write(write{at: len(b)})
	}
	for at := 0; at < len(b); at += SectorBytes {
		sector := b[at:min(at+SectorBytes, len(b))]
		if !bytes.Equal(sector, f.cached.at(at)[:len(sector)]) {
			f.write(write{at, bytes.Clone(sector)})
		}
	}
}

// write changes the content in memory.
func (f *file) write(w write) {
	f.pending = append(f.pending, w)
	f.cached.apply(w)
}

// Wrote notes a write. It is cheaper than Observe, which need not follow.
func (d *Disk) Wrote(name string, at int64, data []byte) {
	d.named(name).write(write{int(at), bytes.Clone(data)})
}

// Length notes the length of a file.
func (d *Disk) Length(name string, n int64) {
	if f := d.named(name); f.cached.length != int(n) {
		f.write(write{at: int(n)})
	}
}

// Sync makes the writes to a file durable, except for what the [Faults] lose.
func (d *Disk) Sync(name string) {
	f := d.named(name)
	writes, lied := d.faults.lie(d.rng, f.pending)
	if lied {
		d.lies++
	}
	f.pending = writes
	f.sync()
}

// Lies returns the number of syncs that have lost something.
func (d *Disk) Lies() int { return d.lies }

func (f *file) sync() {
	for _, w := range f.pending {
		f.onDisk.apply(w)
	}
	f.pending = nil
}

// FailSync is a sync that fails: some of the writes are on the disk, and the system has the
// others in memory alone. No later sync writes them. The length of a file is not data, and
// Linux does not forget it.
func (d *Disk) FailSync(name string) {
	f := d.named(name)
	for _, w := range f.pending {
		if w.data == nil || d.rng.IntN(2) == 0 {
			f.onDisk.apply(w)
		}
	}
	f.pending = nil
}

// SyncDir makes the names in the directory durable.
func (d *Disk) SyncDir() {
	for _, f := range d.files {
		f.diskName = f.name
	}
}

// DropCache forgets what the system has in memory of a file, except for writes that are not
// synced. It changes the file in the directory to the content on the disk.
func (d *Disk) DropCache(name string) {
	f := d.named(name)
	c := f.onDisk.clone()
	for _, w := range f.pending {
		c.apply(w)
	}
	check(c.write(filepath.Join(d.dir, name), &f.cached))
	f.cached = c
}

func readFile(path string) []byte {
	b, err := os.ReadFile(path)
	check(err)
	return b
}

func check(err error) {
	if err != nil {
		panic(fmt.Sprintf("disksim: %v", err))
	}
}
