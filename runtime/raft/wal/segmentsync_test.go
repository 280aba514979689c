package wal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/topogen/topogen/internal/test/memdir"
)

// watched is a log that records each sync, with the content of the file at that time.
type watched struct {
	*fileLog
	mu     sync.Mutex
	synced []string // names and contents
	fail   error
}

// newWatched creates a log and saves a state, because the first save of a process is synced in
// every mode.
func newWatched(t *testing.T, o Options) *watched {
	t.Helper()
	l, _, err := Open(filepath.Join(memdir.Quick(t), "log"), Identity{}, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.Save(&raftpb.HardState{Term: new(uint64(1))}, nil, true), l.Sync()); err != nil {
		t.Fatal(err)
	}
	w := &watched{fileLog: l.(*fileLog)}
	w.active.fsync = func(f *os.File) error {
		b, err := os.ReadFile(f.Name())
		if err != nil {
			return err
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.synced = append(w.synced, filepath.Base(f.Name())+string(b))
		return errors.Join(w.fail, fdatasync(f))
	}
	return w
}

func (w *watched) save(t *testing.T, index uint64, data string) {
	t.Helper()
	e := &raftpb.Entry{Index: &index, Term: new(uint64(1)), Data: []byte(data)}
	if err := w.Save(nil, []*raftpb.Entry{e}, true); err != nil {
		t.Fatal(err)
	}
}

func (w *watched) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.synced)
}

// has reports whether a file that contained the text was synced.
func (w *watched) has(text string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.synced {
		if strings.Contains(s, text) {
			return true
		}
	}
	return false
}

// TestInterval: a log in mode Interval syncs once per interval, if there is data to sync. In the
// synctest bubble, time passes only when all goroutines wait. If the test and the log wake at
// the same time, the test waits for the log.
func TestInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(t, Options{Sync: Interval, Interval: time.Second})
		w.save(t, 1, "first")
		if w.count() > 0 {
			t.Errorf("%d syncs", w.count())
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if w.count() != 1 || !w.has("first") {
			t.Errorf("%d syncs", w.count())
		}
		time.Sleep(time.Minute) // nothing to sync
		synctest.Wait()
		w.save(t, 2, "second")
		if err := w.Close(); err != nil || w.count() != 2 || !w.has("second") {
			t.Error(w.count(), err)
		}
	})
}

func TestIntervalFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(t, Options{Sync: Interval, Interval: time.Second})
		w.fail = errors.New("the disk has failed")
		w.save(t, 1, "first")
		time.Sleep(time.Second)
		synctest.Wait()
		w.fail = nil
		for range 2 {
			if err := w.Save(&raftpb.HardState{Term: new(uint64(2))}, nil, false); !errors.Is(err, ErrFailed) || !strings.Contains(err.Error(), "the disk has failed") {
				t.Error(err)
			}
		}
		if err := w.Close(); !errors.Is(err, ErrFailed) || w.count() != 1 {
			t.Errorf("%d syncs, %v", w.count(), err)
		}
	})
}

func TestNone(t *testing.T) {
	w := newWatched(t, Options{Sync: None})
	w.save(t, 1, "first")
	if w.count() > 0 {
		t.Error("a save in mode None must not sync")
	}
	if err := w.Sync(); err != nil || !w.has("first") {
		t.Error("Sync must sync the data", err)
	}
	w.save(t, 2, "second")
	s := &raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{Index: new(uint64(1)), Term: new(uint64(1))}}
	if err := w.SaveSnapshot(s); err != nil || !w.has("second") {
		t.Error("a snapshot must be durable", err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// TestSegmentsAreSynced: a segment is synced when the next one is started.
func TestSegmentsAreSynced(t *testing.T) {
	for _, mode := range []Sync{Interval, None} {
		w := newWatched(t, Options{Sync: mode, Interval: time.Hour})
		before := []segment{{}}
		for i := uint64(1); len(before) < 5; i++ {
			w.save(t, i, fmt.Sprintf("entry %03d", i))
			all, err := segments(w.active.dir)
			if err != nil {
				t.Fatal(err)
			}
			if i > 1 && len(all) > len(before) && (!w.has(before[len(before)-1].name()) || !w.has(fmt.Sprintf("entry %03d", i-1))) {
				t.Errorf("%v: when segment %d exists, the segment before it must be synced", mode, all[len(all)-1].seq)
			}
			before, w.synced = all, nil
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
}
