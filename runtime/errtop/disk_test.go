package errtop

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing/fstest"
)

var errPower = errors.New("power failure")

// memoryDisk is a disk in memory whose n-th operation fails. The failure is a single one,
// as on a full disk, or it is a power failure, after which all operations fail. The disk
// records what was synced, to compute what may remain after a power failure.
type memoryDisk struct {
	mu     sync.Mutex
	names  map[string]*inode // as processes see them
	synced map[string]*inode // as of the last sync of the folder
	temps  int
	ops    []string // one entry per operation
	failAt int      // counts from 1; 0: never
	power  bool     // the failure is a power failure
}

type inode struct {
	data, synced []byte
	mode         fs.FileMode
}

func newMemoryDisk(files map[string][]byte) *memoryDisk {
	d := &memoryDisk{names: make(map[string]*inode), synced: make(map[string]*inode)}
	for name, b := range files {
		d.names[name] = &inode{b, b, 0o600}
	}
	maps.Copy(d.synced, d.names)
	return d
}

// do counts an operation, and fails if it is the n-th. The caller holds mu.
func (d *memoryDisk) do(op string) error {
	if d.power && len(d.ops) >= d.failAt && d.failAt > 0 {
		return errPower
	}
	d.ops = append(d.ops, op)
	if len(d.ops) == d.failAt {
		if d.power {
			return errPower
		}
		return syscall.ENOSPC
	}
	return nil
}

// afterwards lists the possible contents of a path after a power failure: with the synced
// or the current names, and with all, half or none of the data that was not synced. A
// missing file is nil.
func (d *memoryDisk) afterwards(path string) [][]byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	var found [][]byte
	for _, names := range []map[string]*inode{d.synced, d.names} {
		if f := names[path]; f != nil {
			half := f.data[:len(f.data)/2]
			if len(half) < len(f.synced) {
				half = f.synced
			}
			found = append(found, f.synced, half, f.data)
		} else {
			found = append(found, nil)
		}
	}
	return found
}

func (d *memoryDisk) Stat(name string) (fs.FileInfo, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.names[name]
	if f == nil {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
	}
	return fstest.MapFS{"x": {Data: f.data, Mode: f.mode}}.Stat("x")
}

func (d *memoryDisk) Open(name string) (io.ReadCloser, error) {
	b := d.content(name)
	if b == nil {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader(b)), nil
}

func (d *memoryDisk) List(folder string) ([]fs.DirEntry, error) {
	return nil, errors.ErrUnsupported // then old temporary files are not removed
}

func (d *memoryDisk) CreateTemp(folder, pattern string) (handle, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.do("create"); err != nil {
		return nil, err
	}
	d.temps++
	name := filepath.Join(folder, strings.Replace(pattern, "*", fmt.Sprint(d.temps), 1))
	d.names[name] = &inode{mode: 0o600}
	return memoryHandle{d, name, d.names[name]}, nil
}

func (d *memoryDisk) Rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.do("rename"); err != nil {
		return err
	}
	d.names[to] = d.names[from]
	delete(d.names, from)
	return nil
}

func (d *memoryDisk) Remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.do("remove"); err != nil {
		return err
	}
	delete(d.names, name)
	return nil
}

func (d *memoryDisk) Sync(string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.do("sync folder"); err != nil {
		return err
	}
	d.synced = maps.Clone(d.names)
	return nil
}

// count counts the operations of a kind.
func (d *memoryDisk) count(op string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for _, o := range d.ops {
		if o == op {
			n++
		}
	}
	return n
}

// content returns the content of a file, or nil if it does not exist.
func (d *memoryDisk) content(name string) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.names[name]
	if f == nil {
		return nil
	}
	return append([]byte{}, f.data...)
}

// files lists the names of all files.
func (d *memoryDisk) files() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.names))
}

// fullDisk is a disk on which no file can be created while full is true.
type fullDisk struct {
	*memoryDisk
	is atomic.Bool
}

func (d *fullDisk) CreateTemp(folder, pattern string) (handle, error) {
	f, err := d.memoryDisk.CreateTemp(folder, pattern)
	if err != nil || !d.is.Load() {
		return f, err
	}
	return nil, errors.Join(syscall.ENOSPC, d.Remove(f.Name()))
}

type memoryHandle struct {
	disk *memoryDisk
	name string
	file *inode
}

func (h memoryHandle) Name() string { return h.name }

func (h memoryHandle) Write(b []byte) (int, error) {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	if err := h.disk.do("write"); err != nil {
		h.file.data = append(h.file.data, b[:len(b)/2]...)
		return len(b) / 2, err
	}
	h.file.data = append(h.file.data, b...)
	return len(b), nil
}

func (h memoryHandle) Sync() error {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	if err := h.disk.do("sync"); err != nil {
		return err
	}
	h.file.synced = bytes.Clone(h.file.data)
	return nil
}

func (h memoryHandle) Chmod(mode fs.FileMode) error {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	if err := h.disk.do("chmod"); err != nil {
		return err
	}
	h.file.mode = mode
	return nil
}

func (h memoryHandle) Close() error {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	return h.disk.do("close")
}
