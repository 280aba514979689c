package raft

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// prepareFolder refuses to begin with an empty state where the file was changed
// between a log alone and one of several nodes: the other log stays beside it, and
// nobody would be told. With several nodes it makes the folder that their logs
// stand in.
func prepareFolder(c *Config) error {
	if len(c.Peers) == 0 {
		if name := logBelow(c.Dir); name != "" && !holdsLog(c.Dir) {
			return fmt.Errorf("raft: %s holds the log of a node among several, in %s, which a machine on one disk does not take over; name another path, or move it away", c.Dir, name)
		}
		return nil
	}
	if holdsLog(c.above) {
		return fmt.Errorf("raft: %s holds the log of a machine on one disk, which several do not take over; name another path, or move it away", c.above)
	}
	if err := makeFolder(filepath.Clean(c.above)); err != nil {
		return fmt.Errorf("raft: the folder of the log: %w", err)
	}
	return nil
}

// holdsLog reports whether there is a log in a folder, which package wal will open.
func holdsLog(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, "wal"))
	return err == nil && info.IsDir()
}

// logBelow is a folder in dir that holds a log; "": none does.
func logBelow(dir string) string {
	entries, _ := os.ReadDir(dir) // what cannot be read, package wal cannot open
	for _, e := range entries {
		if holdsLog(filepath.Join(dir, e.Name())) {
			return e.Name()
		}
	}
	return ""
}

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
