package wal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/topogen/topogen/internal/test/memdir"
)

// shortLog creates a log whose last segment ends directly after its records. The engine
// leaves a segment in this state for a moment while it opens a log.
func shortLog(t *testing.T) (dir, file string, end, size int64) {
	t.Helper()
	dir = filepath.Join(memdir.Quick(t), "log")
	l, _, err := Open(dir, Identity{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	entries := []*raftpb.Entry{{Index: new(uint64(1)), Term: new(uint64(1)), Data: []byte("one")}}
	if err := errors.Join(l.Save(&raftpb.HardState{Term: new(uint64(1))}, entries, true), l.Close()); err != nil {
		t.Fatal(err)
	}
	all, err := segments(filepath.Join(dir, segmentsDir))
	if err != nil {
		t.Fatal(err)
	}
	s := newScanner(all, openingNote{}, func(scanned) error { return nil })
	if err := s.run(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(all[0].path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(all[0].path, s.end.offset); err != nil {
		t.Fatal(err)
	}
	return dir, all[0].path, s.end.offset, info.Size()
}

// TestProcessEndsWhileItOpens: with the note in the lock file, Open distinguishes a segment
// that the engine has truncated from a segment that has lost its end. After the log was
// opened, the lock file contains no note.
func TestProcessEndsWhileItOpens(t *testing.T) {
	const right = "opening 0000000000000000-0000000000000000.wal with records up to END of SIZE\n"
	for name, c := range map[string]struct {
		note  string
		opens bool
	}{
		"none":             {"", false},
		"right":            {right, true},
		"a different end":  {strings.Replace(right, "END", "100", 1), false},
		"a different file": {strings.Replace(right, "0.wal", "1.wal", 1), false},
		"incomplete":       {right[:50], false},
		"a huge size":      {strings.Replace(right, "SIZE", "999999999999999", 1), false},
		"something else":   {strings.Repeat("x", 1<<10), false},
	} {
		t.Run(name, func(t *testing.T) {
			dir, file, end, size := shortLog(t)
			note := strings.NewReplacer("END", fmt.Sprint(end), "SIZE", fmt.Sprint(size)).Replace(c.note)
			if err := os.WriteFile(filepath.Join(dir, lockName), []byte(note), 0o600); err != nil {
				t.Fatal(err)
			}
			_, verifyErr := Verify(dir)
			l, s, err := Open(dir, Identity{}, Options{})
			if (verifyErr == nil) != c.opens || (err == nil) != c.opens {
				t.Fatalf("Open and Verify must agree, got %v and %v", err, verifyErr)
			}
			if err != nil {
				damage, is := errors.AsType[*DamageError](err)
				if !is || damage.File != file || damage.Offset != end || !strings.Contains(damage.Reason, "got "+fmt.Sprint(end)+":") {
					t.Error(err)
				}
				return
			}
			if len(s.Entries) != 1 {
				t.Errorf("%+v", s)
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
			if info, err := os.Stat(file); err != nil || info.Size() != size {
				t.Error(info, err)
			}
			if b, err := os.ReadFile(filepath.Join(dir, lockName)); err != nil || len(b) > 0 {
				t.Errorf("%q, %v", b, err)
			}
		})
	}
}
