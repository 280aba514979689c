package wal_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/raft/wal"
)

// eachLog calls f with a log in files and with a simulated log. reopen closes the log and
// opens it again.
func eachLog(t *testing.T, f func(t *testing.T, l wal.Log, reopen func() (wal.Log, wal.Stored))) {
	t.Run("files", func(t *testing.T) {
		dir := filepath.Join(memdir.New(t), "log")
		l, _ := open(t, dir, wal.Options{})
		f(t, l, func() (wal.Log, wal.Stored) {
			must(t, l.Close())
			var s wal.Stored
			l, s = open(t, dir, wal.Options{})
			return l, s
		})
		must(t, l.Close())
		if left := files(t, dir, "snap", "*.tmp"); len(left) > 0 {
			t.Error(left)
		}
		if _, err := wal.Verify(dir); err != nil {
			t.Error(err)
		}
	})
	t.Run("disk", func(t *testing.T) {
		d := wal.NewDisk(1)
		l, _, err := d.Open(own, wal.Options{})
		must(t, err)
		f(t, l, func() (wal.Log, wal.Stored) {
			must(t, l.Close())
			var s wal.Stored
			l, s, err = d.Open(own, wal.Options{})
			must(t, err)
			return l, s
		})
		must(t, l.Close())
	})
}

// create writes a body in several writes and commits the snapshot.
func create(t *testing.T, l wal.Log, head *raftpb.Snapshot, body []byte) {
	t.Helper()
	w, err := l.CreateSnapshot()
	must(t, err)
	n, err := io.Copy(w, iotest.OneByteReader(bytes.NewReader(body[:min(len(body), 1000)])))
	must(t, err)
	_, err = w.Write(body[n:])
	must(t, err)
	must(t, w.Commit(head))
	must(t, w.Abort())
}

func randomBody(size int) []byte {
	b := make([]byte, size)
	rng := rand.NewChaCha8([32]byte{byte(size)})
	_, _ = rng.Read(b)
	return b
}

// checkSnapshot reads a snapshot to its end and compares it.
func checkSnapshot(t *testing.T, r *wal.SnapshotReader, head *raftpb.Snapshot, body []byte) {
	t.Helper()
	if !proto.Equal(r.Snapshot, head) || r.Size != int64(len(body)) {
		t.Errorf("%v of %d bytes, want %v of %d", r.Snapshot, r.Size, head, len(body))
	}
	if err := iotest.TestReader(r, body); err != nil {
		t.Error(err)
	}
	must(t, r.Close())
}

// TestSnapshotsWithBodies: a snapshot is read as it was written, also after a restart, and
// also by a reader that was opened before newer snapshots replaced it.
func TestSnapshotsWithBodies(t *testing.T) {
	const chunk = wal.BodyChunk
	for _, size := range []int{0, 1, 1000, chunk - 1, chunk, chunk + 1, 3*chunk + 7} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			eachLog(t, func(t *testing.T, l wal.Log, reopen func() (wal.Log, wal.Stored)) {
				body, head := randomBody(size), snapshot(5, 1, "members")
				must(t, l.Save(state(1, 1, 0), []*raftpb.Entry{entry(1, 1, "one")}, true))
				create(t, l, head, body)
				r, err := l.OpenSnapshot(5)
				must(t, err)
				checkSnapshot(t, r, head, body)

				l, s := reopen()
				if !proto.Equal(s.Snapshot, head) || s.BodySize != int64(size) || s.State.GetCommit() != 5 {
					t.Errorf("%+v", s)
				}
				r, err = s.OpenBody()
				must(t, err)
				checkSnapshot(t, r, head, body)

				older, err := l.OpenSnapshot(5)
				must(t, err)
				create(t, l, snapshot(6, 1, ""), []byte("six"))
				must(t, l.SaveSnapshot(snapshot(7, 1, "all of it")))
				if _, err := l.OpenSnapshot(5); !errors.Is(err, os.ErrNotExist) {
					t.Error(err)
				}
				checkSnapshot(t, older, head, body)
				r, err = l.OpenSnapshot(6)
				must(t, err)
				checkSnapshot(t, r, snapshot(6, 1, ""), []byte("six"))
				must(t, l.Save(nil, []*raftpb.Entry{entry(8, 1, "eight")}, true))
			})
		})
	}
}

// TestSnapshotsWithoutBodies reads snapshots that SaveSnapshot has saved, as earlier
// versions do.
func TestSnapshotsWithoutBodies(t *testing.T) {
	eachLog(t, func(t *testing.T, l wal.Log, reopen func() (wal.Log, wal.Stored)) {
		if _, err := (wal.Stored{}).OpenBody(); !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
		head := snapshot(5, 1, "all of the state")
		must(t, l.SaveSnapshot(head))
		l, s := reopen()
		if s.BodySize != -1 || !proto.Equal(s.Snapshot, head) {
			t.Errorf("%+v", s)
		}
		stored, err := s.OpenBody()
		must(t, err)
		opened, err := l.OpenSnapshot(5)
		must(t, err)
		for _, r := range []*wal.SnapshotReader{stored, opened} {
			if n, err := io.Copy(io.Discard, r); n != 0 || err != nil || r.Size != -1 || !proto.Equal(r.Snapshot, head) {
				t.Errorf("%d bytes, %v: %+v", n, err, r)
			}
			must(t, r.Close())
		}
	})
}

// TestSnapshotLimits: writer and reader have the same limits. The writer returns an error
// before a limit is exceeded, and the log is unchanged.
func TestSnapshotLimits(t *testing.T) {
	eachLog(t, func(t *testing.T, l wal.Log, reopen func() (wal.Log, wal.Stored)) {
		w, err := l.CreateSnapshot()
		must(t, err)
		wal.FillBody(w, wal.SnapshotBodyMax-3)
		_, err = w.Write([]byte("12"))
		must(t, err)
		if n, err := w.Write([]byte("34")); n != 0 || !errors.Is(err, wal.ErrTooLarge) || !strings.Contains(err.Error(), fmt.Sprint(int64(wal.SnapshotBodyMax))) {
			t.Error(n, err)
		}
		for _, err := range []error{second(w.Write(nil)), second(w.Body()), w.Commit(snapshot(5, 1, ""))} {
			if !errors.Is(err, wal.ErrTooLarge) {
				t.Error(err)
			}
		}
		w, err = l.CreateSnapshot()
		must(t, err)
		if err := w.Commit(snapshot(5, 1, string(make([]byte, wal.SnapshotHeadMax)))); !errors.Is(err, wal.ErrTooLarge) {
			t.Error(err)
		}
		must(t, l.Save(state(1, 1, 0), []*raftpb.Entry{entry(1, 1, "one")}, true))
		if _, s := reopen(); s.Snapshot != nil || len(s.Entries) != 1 {
			t.Errorf("%+v", s)
		}
	})
}

func second[T any](_ T, err error) error { return err }

// TestSnapshotsThatAreNotCommitted: such snapshots leave no files and do not change the log.
func TestSnapshotsThatAreNotCommitted(t *testing.T) {
	eachLog(t, func(t *testing.T, l wal.Log, reopen func() (wal.Log, wal.Stored)) {
		begin := func() wal.SnapshotWriter {
			t.Helper()
			w, err := l.CreateSnapshot()
			must(t, err)
			_, err = w.Write([]byte("state"))
			must(t, err)
			return w
		}
		aborted, late, none, twice := begin(), begin(), begin(), begin()
		must(t, aborted.Abort())
		must(t, aborted.Abort())
		create(t, l, snapshot(5, 1, ""), []byte("five"))
		if err := late.Commit(snapshot(4, 1, "")); !errors.Is(err, wal.ErrInvalid) {
			t.Error(err)
		}
		if err := none.Commit(nil); !errors.Is(err, wal.ErrInvalid) {
			t.Error(err)
		}
		must(t, twice.Commit(snapshot(5, 1, ""))) // the log already has it
		for _, w := range []wal.SnapshotWriter{aborted, late, none, twice} {
			for _, err := range []error{w.Commit(snapshot(9, 1, "")), second(w.Write([]byte("more"))), second(w.Body())} {
				if err == nil || errors.Is(err, wal.ErrFailed) {
					t.Error(err)
				}
			}
		}
		open := begin()
		r, err := l.OpenSnapshot(5)
		must(t, err)
		checkSnapshot(t, r, snapshot(5, 1, ""), []byte("five"))
		before := l
		l, s := reopen()
		if s.Snapshot.GetMetadata().GetIndex() != 5 {
			t.Errorf("%+v", s)
		}
		if err := open.Commit(snapshot(9, 1, "")); !errors.Is(err, wal.ErrClosed) {
			t.Error(err)
		}
		if _, err := before.CreateSnapshot(); !errors.Is(err, wal.ErrClosed) {
			t.Error(err)
		}
	})
}

// TestBodyBeforeCommit: a caller can read the body before it commits.
func TestBodyBeforeCommit(t *testing.T) {
	eachLog(t, func(t *testing.T, l wal.Log, reopen func() (wal.Log, wal.Stored)) {
		body := randomBody(wal.BodyChunk + 10)
		w, err := l.CreateSnapshot()
		must(t, err)
		_, err = w.Write(body)
		must(t, err)
		r, err := w.Body()
		must(t, err)
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, body) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		must(t, r.Close())
		if _, err := w.Write([]byte("more")); err == nil {
			t.Error("Write after Body must fail")
		}
		must(t, w.Commit(snapshot(5, 1, "")))
		_, s := reopen()
		opened, err := s.OpenBody()
		must(t, err)
		checkSnapshot(t, opened, snapshot(5, 1, ""), body)
	})
}

// TestSealedSnapshots: a sealed snapshot is not in the log until it is committed, and Commit
// must have the head that Seal had.
func TestSealedSnapshots(t *testing.T) {
	eachLog(t, func(t *testing.T, l wal.Log, reopen func() (wal.Log, wal.Stored)) {
		head, body := snapshot(3, 1, ""), randomBody(1000)
		sealed := func() wal.SnapshotWriter {
			w, err := l.CreateSnapshot()
			must(t, err)
			must(t, second(w.Write(body)))
			must(t, w.Seal(head))
			must(t, w.Seal(head))
			return w
		}
		w := sealed()
		if _, err := w.Write(body); err == nil {
			t.Error("Write after Seal must fail")
		}
		if err := w.Seal(snapshot(4, 1, "")); err == nil {
			t.Error("Seal with a different head must fail")
		}
		r, err := w.Body()
		must(t, err)
		got, err := io.ReadAll(r)
		must(t, errors.Join(err, r.Close()))
		if !bytes.Equal(got, body) {
			t.Errorf("the body has %d bytes, want %d", len(got), len(body))
		}
		if _, err := l.OpenSnapshot(3); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a snapshot that is not committed must not exist: %v", err)
		}
		if err := w.Commit(snapshot(4, 1, "")); err == nil {
			t.Error("Commit with a different head must fail")
		}
		must(t, w.Abort())
		w = sealed()
		must(t, w.Commit(head))
		if err := w.Seal(head); err == nil {
			t.Error("Seal after Commit must fail")
		}
		_, s := reopen()
		r2, err := s.OpenBody()
		must(t, err)
		checkSnapshot(t, r2, head, body)
	})
}

// TestSavesGoOnWhileASnapshotIsWritten: the log is not locked while the body is written,
// synced and read back. In this test the sync of the body ends after the saves.
func TestSavesGoOnWhileASnapshotIsWritten(t *testing.T) {
	syncing, saved := make(chan struct{}), make(chan struct{})
	dir := filepath.Join(memdir.New(t), "log")
	l, _, err := wal.OpenWatched(dir, own, wal.Options{}, func(f *os.File) error {
		if filepath.Base(filepath.Dir(f.Name())) == "snap" {
			close(syncing)
			<-saved
		}
		return nil
	})
	must(t, err)
	w, err := l.CreateSnapshot()
	must(t, err)
	_, err = w.Write([]byte("state"))
	must(t, err)
	done := make(chan error)
	go func() { done <- w.Commit(snapshot(5, 1, "")) }()
	<-syncing
	for i := range uint64(20) {
		must(t, l.Save(state(1, 1, i), []*raftpb.Entry{entry(i+1, 1, "entry")}, true))
	}
	close(saved)
	must(t, <-done)
	l, s := reopened(t, l, dir)
	if s.Snapshot.GetMetadata().GetIndex() != 5 || len(s.Entries) != 15 {
		t.Errorf("%v, %d entries", s.Snapshot, len(s.Entries))
	}
	must(t, l.Close())
}

// TestSnapshotIsNotSynced: after an error in the file of a snapshot the log still works.
func TestSnapshotIsNotSynced(t *testing.T) {
	gone := errors.New("the disk is gone")
	dir := filepath.Join(memdir.New(t), "log")
	files, _, err := wal.OpenWatched(dir, own, wal.Options{}, func(f *os.File) error {
		if filepath.Base(filepath.Dir(f.Name())) == "snap" {
			return gone
		}
		return nil
	})
	must(t, err)
	d := wal.NewDisk(1)
	disk, _, err := d.Open(own, wal.Options{})
	must(t, err)
	d.FailSync()
	for name, l := range map[string]wal.Log{"files": files, "disk": disk} {
		w, err := l.CreateSnapshot()
		must(t, err)
		if err := w.Commit(snapshot(5, 1, "")); err == nil || errors.Is(err, wal.ErrFailed) || errors.Is(err, wal.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
		must(t, l.Save(state(1, 1, 0), []*raftpb.Entry{entry(1, 1, "one")}, true))
		if _, err := l.OpenSnapshot(5); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
		must(t, l.Close())
	}
}

// TestDamagedBody: a flipped bit and a wrong length of the file are detected, before a
// reader returns bytes that were not written.
func TestDamagedBody(t *testing.T) {
	speed.NoRace(t)
	dir := memdir.New(t)
	l, _ := open(t, dir, wal.Options{})
	body := randomBody(wal.BodyChunk + 100)
	create(t, l, snapshot(5, 1, "head"), body)
	must(t, l.Close())
	d := newDamaged(t, l, dir)
	file := files(t, dir, "snap", "*.snap")[0]
	read := func() error {
		l, s, err := wal.Open(dir, own, wal.Options{})
		if err != nil {
			return err
		}
		r, err := s.OpenBody()
		must(t, err)
		got, err := io.ReadAll(r)
		if !bytes.HasPrefix(body, got) || err == nil && len(got) < len(body) {
			t.Fatalf("the reader returned %d bytes, which are not a prefix of the body", len(got))
		}
		must(t, r.Close())
		must(t, l.Close())
		return err
	}
	check := func(what string, content []byte) {
		t.Helper()
		must(t, os.WriteFile(file, content, 0o600))
		_, verifyErr := wal.Verify(dir)
		for _, err := range []error{read(), verifyErr} {
			if damage, is := errors.AsType[*wal.DamageError](err); !is || damage.File != file {
				t.Fatalf("%s: %v", what, err)
			}
		}
	}
	right := d.files[file]
	must(t, read())
	step := speed.Pick(t, 7, 1, 1) // in the heads of the chunks, and in the footer
	for bit := rand.IntN(1009); bit < len(right)*8; bit += step {
		if at := bit / 8; at > 100 && at < wal.BodyChunk || at > wal.BodyChunk+50 && at < len(right)-100 {
			bit += thorough(t, 1009) * 64
			if bit >= len(right)*8 {
				break
			}
		}
		b := bytes.Clone(right)
		b[bit/8] ^= 1 << (bit % 8)
		check(fmt.Sprintf("bit %d of byte %d of %d", bit%8, bit/8, len(b)), b)
	}
	for n := 0; n < len(right); n += 1 + thorough(t, 499)*97 {
		check(fmt.Sprintf("%d of %d bytes", n, len(right)), right[:n])
	}
	check("the file is longer", append(bytes.Clone(right), 0))
	check("parts are exchanged", exchanged(right))
}

// exchanged returns a copy with two parts exchanged. The snapshot does not have two full
// chunks, so the parts are smaller than a chunk.
func exchanged(b []byte) []byte {
	c := bytes.Clone(b)
	copy(c[1024:2048], b[2048:3072])
	copy(c[2048:3072], b[1024:2048])
	return c
}

// TestLargeBody: a large body needs no more memory than a small one.
func TestLargeBody(t *testing.T) {
	size := speed.Pick(t, int64(48<<20), 64<<20, 4<<30)
	dir := t.TempDir()
	l, _ := open(t, dir, wal.Options{})
	piece := randomBody(1 << 20)
	before := totalAllocated()
	w, err := l.CreateSnapshot()
	must(t, err)
	for range size / int64(len(piece)) {
		_, err = w.Write(piece)
		must(t, err)
	}
	must(t, w.Commit(snapshot(5, 1, "")))
	l, s := reopened(t, l, dir)
	r, err := s.OpenBody()
	must(t, err)
	if n, err := io.Copy(io.Discard, r); n != size || err != nil {
		t.Error(n, err)
	}
	must(t, r.Close())
	_, err = wal.Verify(dir)
	must(t, err)
	if got := totalAllocated() - before; got > 32<<20 {
		t.Errorf("%d bytes were allocated", got)
	}
	must(t, l.Close())
}

// totalAllocated returns the bytes that the process has allocated since it started.
func totalAllocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// TestCrashForgetsTheBody: a crash of the simulated disk loses a body that was not
// committed.
func TestCrashForgetsTheBody(t *testing.T) {
	d := wal.NewDisk(1)
	l, _, err := d.Open(own, wal.Options{})
	must(t, err)
	w, err := l.CreateSnapshot()
	must(t, err)
	_, err = w.Write([]byte("state"))
	must(t, err)
	d.Crash()
	for _, err := range []error{second(w.Write([]byte("more"))), w.Commit(snapshot(5, 1, ""))} {
		if err == nil {
			t.Error("a snapshot writer must fail after a crash")
		}
	}
	_, s, err := d.Open(own, wal.Options{})
	must(t, err)
	if s.Snapshot != nil {
		t.Errorf("%+v", s)
	}
}
