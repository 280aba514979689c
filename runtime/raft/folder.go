package raft

import (
	"errors"
	"os"
	"path/filepath"
)

// makeFolder makes the folder that the logs of several nodes stand in, in one that
// is there. It is durable on return: a node whose log is gone after a power failure
// would have forgotten what it has promised.
func makeFolder(dir string) error {
	if err := os.Mkdir(dir, 0o700); errors.Is(err, os.ErrExist) {
		return nil
	} else if err != nil {
		return err
	}
	above, err := os.Open(filepath.Dir(filepath.Clean(dir)))
	if err != nil {
		return err
	}
	return errors.Join(above.Sync(), above.Close())
}
