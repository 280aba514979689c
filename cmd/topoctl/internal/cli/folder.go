package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/topogen/topogen/runtime/transport/certs"
)

// folder writes certificates and keys. It first writes all files under temporary
// names. Then it renames each file atomically.
type folder struct {
	dir   string
	ready []prepared
}

type prepared struct {
	temporary, name string
	replace         bool
}

// prepare writes a pair under temporary names. It returns an error if a file exists
// and replace is false.
func (f *folder) prepare(name string, p certs.Pair, replace bool) error {
	for _, file := range []struct {
		name string
		data []byte
		mode fs.FileMode
	}{{name + ".key", p.Key, 0o600}, {name + ".crt", p.Cert, 0o644}} {
		path := filepath.Join(f.dir, file.name)
		if _, err := os.Lstat(path); err == nil && !replace {
			return fmt.Errorf("%s exists; --force replaces it", oneLine(path))
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

// write writes and syncs a file. Until the file has its mode, other users cannot
// read it.
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

// commit gives the files their names, and returns the names.
func (f *folder) commit() (written []string, err error) {
	for _, p := range f.ready {
		if p.replace {
			err = os.Rename(p.temporary, p.name)
		} else {
			err = os.Link(p.temporary, p.name) // fails if another process has created the file
		}
		if err != nil {
			return written, err
		}
		written = append(written, p.name)
	}
	return written, nil
}

// removeTemporary removes the temporary files that commit has not renamed.
func (f *folder) removeTemporary() {
	for _, p := range f.ready {
		os.Remove(p.temporary)
	}
}
