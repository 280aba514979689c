package errtop

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"runtime"
	"syscall"

	"github.com/topogen/topogen/runtime/internal/regular"
)

// disk is the part of the file system that a keeper uses. Tests replace it with a disk
// that fails, or loses power, at the n-th operation.
type disk interface {
	Stat(name string) (fs.FileInfo, error)
	Open(name string) (io.ReadCloser, error) // a regular file, else ErrNotRegular
	List(folder string) ([]fs.DirEntry, error)
	CreateTemp(folder, pattern string) (handle, error) // as os.CreateTemp
	Rename(from, to string) error
	Remove(name string) error
	Sync(folder string) error
}

// handle is a file that is being written.
type handle interface {
	io.WriteCloser
	Name() string
	Chmod(fs.FileMode) error
	Sync() error
}

type osDisk struct{}

func (osDisk) Stat(name string) (fs.FileInfo, error)     { return os.Stat(name) }
func (osDisk) List(folder string) ([]fs.DirEntry, error) { return os.ReadDir(folder) }
func (osDisk) Rename(from, to string) error              { return os.Rename(from, to) }
func (osDisk) Remove(name string) error                  { return os.Remove(name) }

func (osDisk) Open(name string) (io.ReadCloser, error) {
	f, _, err := regular.Open(name)
	if errors.Is(err, regular.ErrNotRegular) {
		return nil, ErrNotRegular
	}
	if err != nil {
		return nil, err // not f: a nil *os.File in an interface is not nil
	}
	return f, nil
}

func (osDisk) CreateTemp(folder, pattern string) (handle, error) {
	f, err := os.CreateTemp(folder, pattern)
	if err != nil {
		return nil, err // not f, for the same reason
	}
	return f, nil
}

// Sync makes the names in a folder durable. On systems without such an operation, names
// are durable without it.
func (osDisk) Sync(folder string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) {
		return err
	}
	return nil
}
