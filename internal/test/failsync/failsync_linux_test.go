//go:build amd64 || arm64

package failsync_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/topogen/topogen/internal/test/failsync"
)

func create(t *testing.T) (*os.File, string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "file"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f, f.Name()
}

// TestWatch: each kind of call is shown with its path, and has the outcome that was decided.
func TestWatch(t *testing.T) {
	f, path := create(t)
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	b := make([]byte, 1)
	for what, c := range map[string]struct {
		kind failsync.Kind
		path string
		call func() error
	}{
		"write":      {failsync.Write, path, func() error { _, err := f.Write(b); return err }},
		"write at":   {failsync.Write, path, func() error { _, err := f.WriteAt(b, 0); return err }},
		"truncate":   {failsync.Length, path, func() error { return f.Truncate(1) }},
		"allocate":   {failsync.Length, path, func() error { return syscall.Fallocate(int(f.Fd()), 0, 0, 1) }},
		"read at":    {failsync.Read, path, func() error { _, err := f.ReadAt(b, 0); return err }},
		"directory":  {failsync.Read, filepath.Dir(path), func() error { _, err := dir.ReadDir(-1); return err }},
		"sync":       {failsync.Sync, path, f.Sync},
		"data sync":  {failsync.Sync, path, func() error { return syscall.Fdatasync(int(f.Fd())) }},
		"range sync": {failsync.Sync, path, func() error { return syscall.SyncFileRange(int(f.Fd()), 0, 1, 0) }},
		"dir sync":   {failsync.Sync, filepath.Dir(path), dir.Sync},
		"sync all":   {failsync.Sync, "", func() error { syscall.Sync(); return syscall.EIO }},
		"rename":     {failsync.Name, "", func() error { return os.Rename(path, path) }},
		"remove":     {failsync.Name, "", func() error { return os.Remove(path + ".other") }},
	} {
		t.Run(what, func(t *testing.T) {
			var got []failsync.Call
			var err error
			failsync.Watch(t, c.kind, func(call failsync.Call) error { got = append(got, call); return syscall.EIO }, func() { err = c.call() })
			if !errors.Is(err, syscall.EIO) || len(got) == 0 || got[0] != (failsync.Call{Kind: c.kind, Path: c.path}) {
				t.Errorf("%v: %v", got, err)
			}
			failsync.Watch(t, ^c.kind, func(call failsync.Call) error { t.Errorf("it has another kind: %v", call); return nil }, func() { _ = c.call() })
		})
	}
}

// TestDecisions: a call is carried out, or not, or fails.
func TestDecisions(t *testing.T) {
	f, path := create(t)
	decisions := []error{nil, failsync.ErrSkip, syscall.ENOSPC, nil}
	var errs []error
	calls := 0
	failsync.Watch(t, failsync.Length, func(failsync.Call) error { calls++; return decisions[calls-1] }, func() {
		for i := range decisions {
			errs = append(errs, f.Truncate(int64(10*(1+i))))
			info, err := f.Stat()
			errs = append(errs, err)
			if want := []int64{10, 10, 10, 40}[i]; info.Size() != want {
				t.Errorf("after call %d: %d bytes, want %d", i, info.Size(), want)
			}
		}
	})
	if failed := slices.IndexFunc(errs, func(err error) bool { return err != nil }); failed != 4 || !errors.Is(errs[4], syscall.ENOSPC) {
		t.Errorf("%s: %v", path, errs)
	}
}

// TestOtherGoroutines: the filter ends with Watch, and does not apply to other goroutines.
func TestOtherGoroutines(t *testing.T) {
	f, _ := create(t)
	fail := func(failsync.Call) error { return syscall.EIO }
	stop, stopped := make(chan struct{}), make(chan error)
	go func() {
		for {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
				if err := f.Sync(); err != nil {
					stopped <- err
					return
				}
			}
		}
	}()
	for range 100 {
		failsync.Watch(t, failsync.Sync, fail, func() {
			if f.Sync() == nil {
				t.Error("the sync must fail")
			}
		})
	}
	close(stop)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// TestFailNow: a test that stops inside of Watch ends.
func TestFailNow(t *testing.T) {
	var inner testing.T
	stop := inner.FailNow
	done := make(chan struct{})
	after := false
	go func() {
		defer close(done)
		failsync.Watch(&inner, failsync.Sync, nil, stop)
		after = true
	}()
	if <-done; !inner.Failed() || after {
		t.Error("Watch must stop the test")
	}
}
