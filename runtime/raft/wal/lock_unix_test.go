//go:build unix

package wal_test

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"

	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/raft/wal"
)

// TestLockAndCopies: a closed lock is free although a copy of its descriptor is still open. A
// process has such copies while it is being started.
func TestLockAndCopies(t *testing.T) {
	dir := memdir.Quick(t)
	lock, err := wal.Lock(dir)
	must(t, err)
	duplicate, err := syscall.Dup(int(lock.(interface{ Fd() uintptr }).Fd()))
	must(t, err)
	t.Cleanup(func() { _ = syscall.Close(duplicate) })
	must(t, lock.Close())
	lock, err = wal.Lock(dir)
	must(t, err)
	if _, err := wal.Lock(dir); !errors.Is(err, wal.ErrInUse) {
		t.Errorf("the directory is locked, got: %v", err)
	}
	must(t, lock.Close())
}

// TestLockAndNewProcesses: a directory and a log can be closed and opened again while this
// process starts other processes.
func TestLockAndNewProcesses(t *testing.T) {
	for _, c := range []struct {
		name   string
		reopen func(dir string) error
	}{
		{"directory", func(dir string) error {
			lock, err := wal.Lock(dir)
			if err != nil {
				return err
			}
			return lock.Close()
		}},
		{"log", func(dir string) error {
			l, _, err := wal.Open(dir, own, wal.Options{})
			if err != nil {
				return err
			}
			return l.Close()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := memdir.New(t)
			must(t, c.reopen(dir))
			for started := startProcesses(t, speed.Pick(t, 30, 200, 1000)); ; {
				select {
				case <-started:
					return
				default:
					must(t, c.reopen(dir))
				}
			}
		})
	}
}

// startProcesses starts short processes, one after the other. It closes the channel at the
// end.
func startProcesses(t *testing.T, count int) <-chan struct{} {
	t.Helper()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range count {
			if err := exec.Command("true").Run(); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	t.Cleanup(func() { <-ended })
	return ended
}

// TestLockedSegment: Open waits for the lock of a segment, because a process that is being
// started may have a copy of its descriptor. It does not wait forever.
func TestLockedSegment(t *testing.T) {
	d := smallLog(t)
	segments := files(t, d.dir, "wal", "*.wal")
	for _, c := range []struct {
		name string
		held time.Duration
		want error
	}{
		{"for a moment", time.Second, nil},
		{"for longer", time.Hour, wal.ErrInUse},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lock, err := fileutil.TryLockFile(segments[len(segments)-1], syscall.O_RDWR, 0)
				must(t, err)
				defer func() { _ = lock.Close() }()
				time.AfterFunc(c.held, func() { _ = lock.Close() })
				began := time.Now()
				l, _, err := wal.Open(d.dir, own, wal.Options{})
				if took := time.Since(began); took < time.Second || took > 10*time.Second {
					t.Errorf("Open took %v", took)
				}
				if !errors.Is(err, c.want) {
					t.Fatal(err)
				}
				if err != nil {
					if !strings.Contains(err.Error(), filepath.Join(d.dir, "wal")+" is in use") {
						t.Error(err)
					}
					return
				}
				must(t, l.Close())
			})
		})
	}
}
