package write

import (
	"io"
	"io/fs"
	"os"
)

// disk is the interface to a folder. Names are slash paths relative to the folder. Tests use
// an implementation that fails at the n-th call.
type disk interface {
	Lstat(name string) (fs.FileInfo, error)
	Read(name string, bytesMax int64) ([]byte, error)     // the first bytesMax bytes
	List(folder string) ([]string, error)                 // only names: a stat of each file would take ten times as long
	Create(name string, perm fs.FileMode) (handle, error) // the file must not exist
	Mkdir(folder string) error
	Rename(from, to string) error
	Remove(name string) error
	Sync(folder string) error
	Close() error
}

// handle is a file that is being written.
type handle interface {
	io.WriteCloser
	Chmod(fs.FileMode) error
	Sync() error
}

// rootDisk is a disk whose names cannot leave the folder, by neither .. nor a symbolic link.
type rootDisk struct{ root *os.Root }

func openRoot(dir string) (disk, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return rootDisk{root}, nil
}

func (d rootDisk) Lstat(name string) (fs.FileInfo, error) { return d.root.Lstat(name) }
func (d rootDisk) Mkdir(folder string) error              { return d.root.Mkdir(folder, 0o755) }
func (d rootDisk) Rename(from, to string) error           { return d.root.Rename(from, to) }
func (d rootDisk) Remove(name string) error               { return d.root.Remove(name) }
func (d rootDisk) Close() error                           { return d.root.Close() }

func (d rootDisk) Read(name string, bytesMax int64) ([]byte, error) {
	f, err := d.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, bytesMax))
}

func (d rootDisk) List(folder string) ([]string, error) {
	f, err := d.root.Open(folder)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

// isRegular reports whether a regular file exists under the name.
func isRegular(d disk, name string) bool {
	info, err := d.Lstat(name)
	return err == nil && info.Mode().IsRegular()
}

func (d rootDisk) Create(name string, perm fs.FileMode) (handle, error) {
	f, err := d.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return nil, err // not f: a nil *os.File in an interface is not nil
	}
	return f, nil
}

func (d rootDisk) Sync(folder string) error {
	f, err := d.root.Open(folder)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
