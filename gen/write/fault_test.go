package write

import (
	"io/fs"
	"sync/atomic"
)

// faults makes the n-th call to any of its disks fail. If once is set, later calls work again;
// otherwise all later calls fail without effect, as after a kill.
type faults struct {
	calls  atomic.Int64
	failAt int64 // 0: never
	once   bool
	err    error
	kill   func() // instead of an error
	beside func() // instead of an error, and the build goes on
}

func (f *faults) open(dir string) (disk, error) {
	if err := f.step(); err != nil {
		return nil, err
	}
	d, err := openRoot(dir)
	if err != nil {
		return nil, err
	}
	return faultyDisk{d, f}, nil
}

func (f *faults) step() error {
	n := f.calls.Add(1)
	if f.failAt == 0 || n < f.failAt || (f.once || f.beside != nil) && n > f.failAt {
		return nil
	}
	if f.beside != nil {
		f.beside()
		return nil
	}
	if f.kill != nil {
		f.kill()
	}
	return &fs.PathError{Op: "test", Path: "name that no finding should show", Err: f.err}
}

type faultyDisk struct {
	disk
	faults *faults
}

func (d faultyDisk) Lstat(name string) (fs.FileInfo, error) {
	if err := d.faults.step(); err != nil {
		return nil, err
	}
	return d.disk.Lstat(name)
}

func (d faultyDisk) Read(name string, bytesMax int64) ([]byte, error) {
	if err := d.faults.step(); err != nil {
		return nil, err
	}
	return d.disk.Read(name, bytesMax)
}

func (d faultyDisk) List(folder string) ([]string, error) {
	if err := d.faults.step(); err != nil {
		return nil, err
	}
	return d.disk.List(folder)
}

func (d faultyDisk) Create(name string, perm fs.FileMode) (handle, error) {
	if err := d.faults.step(); err != nil {
		return nil, err
	}
	h, err := d.disk.Create(name, perm)
	return faultyHandle{h, d.faults}, err
}

func (d faultyDisk) Mkdir(folder string) error {
	if err := d.faults.step(); err != nil {
		return err
	}
	return d.disk.Mkdir(folder)
}

func (d faultyDisk) Rename(from, to string) error {
	if err := d.faults.step(); err != nil {
		return err
	}
	return d.disk.Rename(from, to)
}

func (d faultyDisk) Remove(name string) error {
	if err := d.faults.step(); err != nil {
		return err
	}
	return d.disk.Remove(name)
}

func (d faultyDisk) Sync(folder string) error {
	if err := d.faults.step(); err != nil {
		return err
	}
	return d.disk.Sync(folder)
}

type faultyHandle struct {
	handle
	faults *faults
}

// Write fails after half of the data, like a full disk.
func (h faultyHandle) Write(p []byte) (int, error) {
	if err := h.faults.step(); err != nil {
		n, _ := h.handle.Write(p[:len(p)/2])
		return n, err
	}
	return h.handle.Write(p)
}

func (h faultyHandle) Chmod(mode fs.FileMode) error {
	if err := h.faults.step(); err != nil {
		return err
	}
	return h.handle.Chmod(mode)
}

func (h faultyHandle) Sync() error {
	if err := h.faults.step(); err != nil {
		return err
	}
	return h.handle.Sync()
}

func (h faultyHandle) Close() error {
	err := h.faults.step()
	if closed := h.handle.Close(); err == nil {
		return closed
	}
	return err
}
