package raft

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/topogen/topogen/internal/test/failsync"
	"github.com/topogen/topogen/runtime/raft/wal"
)

// TestSyncs: what a node stores beside its log is durable, or the call returns the error of the
// sync that failed.
func TestSyncs(t *testing.T) {
	for name, c := range map[string]struct {
		want string
		call func(dir string, disk Disk) error
	}{
		"record":                              {"log/member.tmp log", func(_ string, d Disk) error { return d.SetRecord(Record{Name: "n1", ID: 1}) }},
		"record that is read":                 {"log", func(_ string, d Disk) error { _, err := d.Record(); return err }},
		"removed log":                         {"log", func(_ string, d Disk) error { return d.RemoveLog() }},
		"folder":                              {".", func(dir string, _ Disk) error { return makeFolder(filepath.Join(dir, "nodes")) }},
		"folder of a process that was killed": {".", func(dir string, _ Disk) error { return makeFolder(filepath.Join(dir, "log")) }},
		"begin of an image":                   {"log", func(dir string, _ Disk) error { return setUnfinished(filepath.Join(dir, "log"), true) }},
		"complete image": {"log log", func(dir string, _ Disk) error {
			dir = filepath.Join(dir, "log")
			return errors.Join(setUnfinished(dir, true), setUnfinished(dir, false))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			failsync.Check(t, c.want, func(dir string) func() error {
				disk, err := OpenFolder(filepath.Join(dir, "log"), wal.Options{})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = disk.Close() })
				return func() error { return c.call(dir, disk) }
			})
		})
	}
}
