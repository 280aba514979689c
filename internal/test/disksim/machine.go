package disksim

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/topogen/topogen/internal/test/failsync"
	"github.com/topogen/topogen/internal/test/memdir"
)

// Chances are the probabilities of the faults of a [Machine].
type Chances struct {
	Power float64 // fails before a system call
	Sync  float64 // returns an error
	Lie   float64 // a sync loses, tears or misdirects a write
	Read  float64 // returns an error, during a call of Read
}

// A Machine runs code on simulated disks below a directory and its subdirectories. It decides
// about each system call of the code that needs the disk.
type Machine struct {
	Dir     string // in memory; a power failure moves it to another directory
	Chances Chances

	Off     bool   // the power has failed: all calls fail until Restart
	BadSync string // path below Dir of the sync that has failed during the last call
	BadRead string // path below Dir of the read that has failed during the last call
	Lied    bool   // a sync has lied during the last call

	Faults map[string]int // how often each fault has happened

	t          *testing.T
	rng        *rand.Rand
	root       string // directory of all generations of Dir
	generation int
	reading    bool
	cut        bool // a file has got another length, which observe has not seen: the next write may hide it
	folders    []*folder
}

// folder is a directory of the log with the disk below it.
type folder struct {
	info     os.FileInfo
	name     string // below Machine.Dir, in memory; "": removed
	diskName string // on the disk; "": none
	disk     *Disk
}

// NewMachine returns a machine with an empty directory Dir. Its parent is below root, an empty
// directory in memory.
func NewMachine(t *testing.T, root string, rng *rand.Rand, c Chances) *Machine {
	m := &Machine{t: t, rng: rng, root: root, Chances: c, Faults: make(map[string]int)}
	m.Dir = m.path()
	check(os.MkdirAll(m.Dir, 0o700))
	m.start()
	return m
}

// path returns the directory of the current generation.
func (m *Machine) path() string { return filepath.Join(m.root, fmt.Sprint(m.generation), "dir") }

// start begins with what the directory has.
func (m *Machine) start() {
	m.folders, m.Off = nil, false
	m.observe()
	for _, f := range m.folders {
		f.diskName = f.name
		f.disk = New(filepath.Join(m.Dir, f.name), m.rng)
	}
}

// Read calls f like Run, and reads may fail too.
func (m *Machine) Read(f func() error) error {
	m.reading = true
	defer func() { m.reading = false }()
	return m.Run(f)
}

// Run calls f, and returns its error. Other goroutines that f starts do not see the faults.
func (m *Machine) Run(f func() error) (err error) {
	m.BadSync, m.BadRead, m.Lied = "", "", false
	kinds := failsync.Sync | failsync.Length | failsync.Write | failsync.Name | failsync.Drop
	if m.reading && m.Chances.Read > 0 {
		kinds |= failsync.Read
	}
	failsync.Watch(m.t, kinds, m.decide, func() { err = f() })
	return err
}

// decide decides about a system call.
func (m *Machine) decide(c failsync.Call) error {
	path, inside := strings.CutPrefix(c.Path, m.Dir+"/")
	if c.Kind&(failsync.Write|failsync.Length|failsync.Read) != 0 && !inside {
		return nil // package testing writes a log too
	}
	if m.Off {
		return syscall.EIO
	}
	if c.Kind == failsync.Read {
		if m.chance(m.Chances.Read) {
			m.BadRead = path
			m.Faults["read"]++
			return syscall.EIO
		}
		return nil
	}
	if c.Kind == failsync.Write && !m.cut {
		return nil
	}
	m.observe()
	m.cut = c.Kind == failsync.Length
	if m.chance(m.Chances.Power) {
		m.powerFails()
		return syscall.EIO
	}
	if c.Kind == failsync.Length || c.Kind == failsync.Write || c.Kind == failsync.Name {
		return nil
	}
	if c.Path == m.Dir {
		path = "."
	} else if !inside {
		return failsync.ErrSkip
	}
	if c.Kind == failsync.Drop {
		if f, name := m.file(path); f != nil {
			f.disk.DropCache(name)
		}
		return failsync.ErrSkip
	}
	return m.sync(path)
}

func (m *Machine) chance(p float64) bool { return m.rng.Float64() < p }

// sync syncs a file or directory.
func (m *Machine) sync(path string) error {
	f, name := m.file(path)
	d := m.folder(path)
	if m.chance(m.Chances.Sync) {
		m.BadSync = path
		m.Faults["sync"]++
		if f != nil && d == nil {
			f.disk.FailSync(name)
		}
		return syscall.EIO
	}
	switch {
	case d != nil:
		d.disk.SyncDir()
		for _, f := range m.folders {
			if filepath.Dir(f.name) == d.name && f.name != "." || f.name == "" && filepath.Dir(f.diskName) == d.name {
				f.diskName = f.name
			}
		}
	case f != nil:
		before := f.disk.Lies()
		if m.chance(m.Chances.Lie) {
			f.disk.SetFaults([]Faults{{Lost: 1}, {Torn: 1}, {Misdirected: 1}}[m.rng.IntN(3)])
		}
		f.disk.Sync(name)
		f.disk.SetFaults(Faults{})
		if f.disk.Lies() > before {
			m.Lied = true
			m.Faults["lie"]++
		}
	}
	return failsync.ErrSkip
}

// IsDir reports whether a path below Dir is a directory.
func (m *Machine) IsDir(path string) bool { return m.folder(path) != nil }

// folder returns a directory by its name in memory; nil: there is none.
func (m *Machine) folder(path string) *folder {
	for _, f := range m.folders {
		if f.name == path {
			return f
		}
	}
	return nil
}

// file returns the folder of a file, and its name there; nil: the file does not exist.
func (m *Machine) file(path string) (*folder, string) {
	f := m.folder(filepath.Dir(path))
	if _, err := os.Lstat(filepath.Join(m.Dir, path)); f == nil || err != nil {
		return nil, ""
	}
	return f, filepath.Base(path)
}

// observe compares the directories with the state that the machine knows.
func (m *Machine) observe() {
	names := []string{"."}
	entries, err := os.ReadDir(m.Dir)
	check(err)
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	var found []*folder
	for _, name := range names {
		info, err := os.Stat(filepath.Join(m.Dir, name))
		check(err)
		i := slices.IndexFunc(m.folders, func(f *folder) bool { return f.name != "" && os.SameFile(f.info, info) })
		var f *folder
		if i >= 0 {
			f = m.folders[i]
			if f.name != name {
				f.disk.Move(filepath.Join(m.Dir, name))
			}
		} else {
			f = &folder{info: info, disk: m.empty(name)}
			m.folders = append(m.folders, f)
		}
		f.name = name
		found = append(found, f)
		f.disk.Observe()
	}
	m.folders = slices.DeleteFunc(m.folders, func(f *folder) bool {
		if !slices.Contains(found, f) {
			f.name = ""
		}
		return f.name == "" && f.diskName == ""
	})
}

// empty returns the disk of a directory whose files are all unsynced.
func (m *Machine) empty(name string) *Disk {
	dir := filepath.Join(m.root, "empty")
	check(os.MkdirAll(dir, 0o700))
	d := New(dir, m.rng)
	d.Move(filepath.Join(m.Dir, name))
	return d
}

// powerFails ends all system calls, and writes what is left to another directory.
func (m *Machine) powerFails() {
	m.Off = true
	m.Faults["power"]++
	m.generation++
	next := m.path()
	loss := AnyLoss(m.rng)
	check(os.MkdirAll(filepath.Dir(next), 0o700))
	left := map[string]*folder{}
	for _, f := range m.folders {
		name := f.diskName
		if m.rng.IntN(2) == 0 {
			name = f.name
		}
		if f.name == "." {
			name = "."
		}
		if name != "" {
			left[name] = f
		}
	}
	names := make([]string, 0, len(left))
	for name := range left {
		names = append(names, name)
	}
	slices.Sort(names) // "." is the first, and creates the directory
	for _, name := range names {
		left[name].disk.Crash(filepath.Join(next, name), loss)
	}
}

// DropCaches forgets what the system has in memory of all files; see [Disk.DropCache].
func (m *Machine) DropCaches() {
	m.observe()
	for _, folder := range m.folders {
		for _, f := range folder.disk.files {
			if folder.name != "" && f.name != "" {
				folder.disk.DropCache(f.name)
			}
		}
	}
}

// Restart starts the machine again after a power failure.
func (m *Machine) Restart() {
	check(memdir.RemoveAll(filepath.Dir(m.Dir))) // a goroutine that has not ended yet may create a file during the removal
	m.Dir = m.path()
	m.start()
}

// Wipe continues with an empty directory.
func (m *Machine) Wipe() {
	m.generation++
	check(os.MkdirAll(m.path(), 0o700))
	m.Restart()
}
