package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/topogen/topogen/runtime/transport/certs"
)

// folder writes certificates and keys: all of them under other names first, and
// then each at once in its place.
type folder struct {
	dir   string
	ready []prepared
}

type prepared struct {
	temporary, name string
	replace         bool
}

// prepare writes a pair under other names. Where a file of the right name is there
// already, it is an error unless that is to be replaced.
func (f *folder) prepare(name string, p certs.Pair, replace bool) error {
	for _, file := range []struct {
		name string
		data []byte
		mode fs.FileMode
	}{{name + ".key", p.Key, 0o600}, {name + ".crt", p.Cert, 0o644}} {
		path := filepath.Join(f.dir, file.name)
		if _, err := os.Lstat(path); err == nil && !replace {
			return fmt.Errorf("%s is there already; --force replaces it", oneLine(path))
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		temporary, err := f.write(file.data, file.mode)
		if err != nil {
			return err
		}
		f.ready = append(f.ready, prepared{temporary, path, replace})
	}
	return nil
}

// write writes a file that nobody else can read until it has its mode, and syncs it.
func (f *folder) write(data []byte, mode fs.FileMode) (name string, err error) {
	file, err := os.CreateTemp(f.dir, ".topoctl-*")
	if err != nil {
		return "", err
	}
	_, err = file.Write(data)
	err = errors.Join(err, file.Chmod(mode), file.Sync(), file.Close())
	if err != nil {
		os.Remove(file.Name())
		return "", err
	}
	return file.Name(), nil
}

// commit puts the files in their places, and returns which.
func (f *folder) commit() (written []string, err error) {
	for _, p := range f.ready {
		if p.replace {
			err = os.Rename(p.temporary, p.name)
		} else {
			err = os.Link(p.temporary, p.name) // fails where somebody was faster
		}
		if err != nil {
			return written, err
		}
		written = append(written, p.name)
	}
	return written, nil
}

// forget removes what has not found its place.
func (f *folder) forget() {
	for _, p := range f.ready {
		os.Remove(p.temporary)
	}
}
