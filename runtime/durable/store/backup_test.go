//go:build unix

package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/durable/store"
)

// A buffer is a sink in memory.
type buffer struct {
	bytes.Buffer
	begun int64
	ctx   context.Context
	write func() error // called before each write; nil: nothing is
}

func (b *buffer) Begin(ctx context.Context, n int64) error {
	b.begun, b.ctx = n, ctx
	return nil
}

func (b *buffer) Write(p []byte) (int, error) {
	if b.write != nil {
		if err := b.write(); err != nil {
			return 0, err
		}
	}
	return b.Buffer.Write(p)
}

// backup returns a file with a backup of a store, which passes verification.
func backup(t testing.TB, s interface {
	Backup(context.Context, store.Sink) error
}) string {
	t.Helper()
	var b buffer
	must(t, s.Backup(t.Context(), &b))
	if int64(b.Len()) != b.begun {
		t.Fatalf("%d bytes, announced were %d", b.Len(), b.begun)
	}
	name := filepath.Join(memdir.Quick(t), "backup")
	must(t, os.WriteFile(name, b.Bytes(), 0o600))
	report, err := store.VerifyFile(name)
	must(t, err)
	if len(report.Damage) > 0 {
		t.Fatal(report.Damage[0])
	}
	return name
}

// restored returns the content of a backup after it was restored, and continues to use it.
func restored(t testing.TB, name string) map[string]string {
	t.Helper()
	dir := filepath.Join(memdir.Quick(t), "restored")
	_, _, err := store.Restore(name, dir, false)
	must(t, err)
	s := open(t, dir, store.Options{})
	content := dump(t, s)
	for i := range 3 {
		must(t, s.Update(func(tx store.Tx) error { tx.Put(6, []byte("new"), fmt.Append(nil, i)); return nil }))
	}
	must(t, s.Close())
	report, err := store.Verify(dir)
	must(t, err)
	if len(report.Damage) > 0 {
		t.Fatal(report.Damage[0])
	}
	return content
}

// TestBackup: a backup of a store has its content, whether the number of the last commit is odd
// or even, and whether the store is open, was closed or was killed. A restored store can be
// written.
func TestBackup(t *testing.T) {
	dir := memdir.Quick(t)
	s := open(t, dir, store.Options{})
	restored(t, backup(t, s)) // of a store without a commit
	for i := range speed.Pick(t, 2, 4, 4) {
		must(t, s.Update(func(tx store.Tx) error { tx.Put(1, fmt.Append(nil, i), bytes.Repeat([]byte{1}, 10_000)); return nil }))
		if got := restored(t, backup(t, s)); !maps.Equal(got, dump(t, s)) {
			t.Errorf("commit %d: the content differs", i)
		}
	}
	fill(t, s)
	content := dump(t, s)
	if !maps.Equal(restored(t, backup(t, s)), content) {
		t.Error("the content differs")
	}
	must(t, s.Close())
	if err := s.Backup(t.Context(), &buffer{}); !errors.Is(err, store.ErrClosed) {
		t.Error(err)
	}
	killed, contentOfKilled := killed(t)
	for dir, content := range map[string]map[string]string{dir: content, killed: contentOfKilled} {
		before := folderState(t, dir)
		r, err := store.OpenReadOnly(dir, store.Options{})
		must(t, err)
		name := backup(t, r)
		must(t, r.Close())
		if !maps.Equal(restored(t, name), content) {
			t.Error("the content differs")
		}
		if !maps.Equal(before, folderState(t, dir)) {
			t.Error("the backup has changed the folder")
		}
		s := open(t, dir, store.Options{}) // it is closed, and its last commits are the same
		if !maps.Equal(restored(t, backup(t, s)), content) {
			t.Error("the content differs")
		}
		must(t, s.Close())
	}
}

// TestBackupUnderLoad: a backup contains what was written before it began, each transaction
// completely or not at all, while others write.
func TestBackupUnderLoad(t *testing.T) {
	s := open(t, memdir.Quick(t), store.Options{})
	var done atomic.Int64 // the last transaction that was answered
	var group sync.WaitGroup
	stop := make(chan struct{})
	group.Go(func() {
		rng := rand.New(rand.NewPCG(1, 1))
		for i := int64(1); ; i++ {
			must(t, s.Update(func(tx store.Tx) error {
				for k := range 5 { // the same value five times
					tx.Put(1, fmt.Append(nil, k), fmt.Append(nil, i))
				}
				tx.Put(2, fmt.Append(nil, rng.IntN(1000)), bytes.Repeat([]byte{byte(i)}, rng.IntN(5000)))
				tx.Delete(2, fmt.Append(nil, rng.IntN(1000)))
				return nil
			}))
			done.Store(i)
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	for range speed.Pick(t, 3, 20, 100) {
		for before := done.Load(); done.Load() < before+10; { // so that there is something new
			time.Sleep(time.Millisecond)
		}
		acknowledged := done.Load()
		content := restored(t, backup(t, s))
		var values []string
		for key, value := range content {
			if strings.HasPrefix(key, "\x01") {
				values = append(values, value)
			}
		}
		var got int64
		if len(values) != 5 {
			t.Fatalf("%d values", len(values))
		}
		for _, v := range values {
			if v != values[0] {
				t.Fatalf("a transaction is not complete: %v", values)
			}
		}
		if _, err := fmt.Sscan(values[0], &got); err != nil || got < acknowledged {
			t.Fatalf("transaction %d was answered, the backup has %d: %v", acknowledged, got, err)
		}
	}
	close(stop)
	group.Wait()
	must(t, s.Close())
}

// TestBackupGivesWay: a commit that must map the file again ends a backup whose reader has
// stopped, and is answered soon after.
func TestBackupGivesWay(t *testing.T) {
	defer store.SetMapBytes(0)()
	s := open(t, memdir.Quick(t), store.Options{})
	s.SetCommitWait(20 * time.Millisecond)
	fill(t, s)
	reading := make(chan struct{})
	b := &buffer{}
	b.write = sync.OnceValue(func() error {
		close(reading)
		<-b.ctx.Done()
		return context.Cause(b.ctx)
	})
	backed := make(chan error)
	go func() { backed <- s.Backup(t.Context(), b) }()
	<-reading
	for i := range 8 {
		must(t, s.Update(func(tx store.Tx) error { tx.Put(1, fmt.Append(nil, i), make([]byte, 1<<20)); return nil }))
	}
	if err := <-backed; !errors.Is(err, store.ErrCommitWaits) {
		t.Error(err)
	}
	backup(t, s)
	must(t, s.Close())
}

// TestBackupWriterFails: the error of a sink ends a backup, and so does its context.
func TestBackupWriterFails(t *testing.T) {
	s := open(t, memdir.Quick(t), store.Options{})
	fill(t, s)
	broken := errors.New("broken")
	for n := range 4 {
		b := &buffer{write: func() error {
			if n--; n < 0 {
				return broken
			}
			return nil
		}}
		if err := s.Backup(t.Context(), b); err == nil || !strings.Contains(err.Error(), "broken") {
			t.Error(err)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	b := &buffer{write: func() error { cancel(broken); return nil }}
	if err := s.Backup(ctx, b); !errors.Is(err, broken) {
		t.Error(err)
	}
	must(t, s.Close())
}

// TestRestore: a store is never replaced, unless its file is kept, and a backup that is damaged
// or cut is refused and leaves nothing.
func TestRestore(t *testing.T) {
	s := open(t, memdir.Quick(t), store.Options{})
	fill(t, s)
	content := dump(t, s)
	name := backup(t, s)
	must(t, s.Close())
	dir := filepath.Join(memdir.Quick(t), "store")

	b, err := os.ReadFile(name)
	must(t, err)
	for what, bad := range map[string][]byte{"cut": b[:len(b)/2], "cut to its head": b[:2*pageBytes], "empty": nil, "damaged": bytes.ReplaceAll(b, []byte("key 1"), []byte("key 7"))} {
		other := filepath.Join(memdir.Quick(t), "backup")
		must(t, os.WriteFile(other, bad, 0o600))
		_, _, err := store.Restore(other, dir, true)
		if !isDamage(err) && !errors.Is(err, store.ErrNotAStore) {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("%s: there is a folder: %v", what, err)
		}
	}

	_, report, err := store.Restore(name, dir, false)
	if must(t, err); report.ID == "" {
		t.Errorf("%+v", report)
	}
	before := folderState(t, dir)[file(dir)]
	if _, _, err := store.Restore(name, dir, false); !errors.Is(err, store.ErrExists) || folderState(t, dir)[file(dir)] != before {
		t.Errorf("over a store: %v", err)
	}
	s = open(t, dir, store.Options{})
	if _, _, err := store.Restore(name, dir, true); !errors.Is(err, store.ErrInUse) {
		t.Errorf("over a store in use: %v", err)
	}
	must(t, s.Update(func(tx store.Tx) error { tx.Put(6, []byte("later"), nil); return nil }))
	later := dump(t, s)
	must(t, s.Close())
	old, _, err := store.Restore(name, dir, true)
	must(t, err)
	s = open(t, dir, store.Options{})
	if !maps.Equal(dump(t, s), content) {
		t.Error("the content is not that of the backup")
	}
	must(t, s.Close())
	if !maps.Equal(restored(t, old), later) {
		t.Error("the old file does not have the old content")
	}
}

// childRestores restores a backup again and again over the store in a directory.
func childRestores(arguments []string) {
	fmt.Println("begins")
	for {
		old, _, err := store.Restore(arguments[0], arguments[1], true)
		if err != nil && !errors.Is(err, fs.ErrExist) { // two in the same second would give the old file the same name
			fmt.Println(err)
			return
		}
		if old != "" {
			_ = os.Remove(old) // the test has the backup
		}
	}
}

// TestKilledRestore: a process that is killed while it restores a backup leaves the whole store,
// or none.
func TestKilledRestore(t *testing.T) {
	s := open(t, memdir.Quick(t), store.Options{})
	fill(t, s)
	content := dump(t, s)
	name := backup(t, s)
	must(t, s.Close())
	rounds := speed.Pick(t, 2, 30, 300)
	whole := 0
	for range rounds {
		dir := filepath.Join(memdir.Quick(t), "store")
		c := start(t, "restore", name, dir)
		if line, _ := c.line(t); line != "begins" {
			t.Fatal(line)
		}
		<-time.After(time.Duration(rand.IntN(20_000)) * time.Microsecond) // a random moment of the restore
		must(t, c.cmd.Process.Kill())
		if line, more := c.line(t); more {
			t.Fatal(line)
		}
		_ = c.cmd.Wait() // it was killed
		r, err := store.OpenReadOnly(dir, store.Options{})
		if errors.Is(err, fs.ErrNotExist) {
			_, _, err := store.Restore(name, dir, false)
			must(t, err)
			r, err = store.OpenReadOnly(dir, store.Options{})
			must(t, err)
		} else if must(t, err); true {
			whole++
		}
		if !maps.Equal(dump(t, r), content) {
			t.Fatal("the content is not that of the backup")
		}
		must(t, r.Close())
	}
	t.Logf("%d of %d stores were whole after the kill", whole, rounds)
}
