//go:build unix

package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/topogen/topogen/runtime/durable/store"
	"github.com/topogen/topogen/runtime/internal/disksim"
	"github.com/topogen/topogen/runtime/internal/race"
)

const fileName = "promises.db"

// attemptTable has the number of the attempt at the last transaction: a transaction that was
// interrupted is carried out again, with other content.
const attemptTable = 6

// A world is a store on a simulated disk, over power failures, failed syncs, kills and
// restarts. Transaction i is change(tx, i), so a state is known by the number of its last
// transaction.
type world struct {
	t        *testing.T
	rng      *rand.Rand
	seed     uint64
	base     string
	dirs     int
	dir      string
	disk     *disksim.Disk
	next     *disksim.Disk // after the power has failed
	store    *store.Disk
	attempts int         // of transactions
	attempt  map[int]int // the last attempt at a transaction
	answered int         // transactions
	begun    int         // answered, or one more while a commit is under way
	states   map[int]map[string]string

	writes int  // of the current call
	crash  int  // the write at which the power fails; 0: never
	failed bool // the power has failed: the rest of the call happens in a process that is gone
	torn   int  // power failures while a meta page is not synced
	fault  int  // 1, 2: the first or the second sync of the next commit fails; 0: none

	faults disksim.Faults
	lied   map[int]bool // the commits after which a sync of the meta page was a lie
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 31)), base: memoryDir(t), states: map[int]map[string]string{0: {}}, attempt: map[int]int{}, lied: map[int]bool{}}
	w.move()
	must(t, os.Mkdir(w.dir, 0o700))
	s, err := store.Open(w.dir, store.Options{})
	must(t, err)
	must(t, s.Close())
	w.disk = disksim.New(w.dir, w.rng)
	w.open()
	return w
}

// move goes to a new directory, which the power failure fills.
func (w *world) move() {
	if w.dir != "" {
		must(w.t, os.RemoveAll(w.dir))
	}
	w.dirs++
	w.dir = filepath.Join(w.base, strconv.Itoa(w.dirs))
}

func (w *world) fatalf(format string, arguments ...any) {
	w.t.Helper()
	w.t.Fatalf("%s\nrepeat with: TOPOGEN_SEED=%d go test -count 200 -failfast -run %s ./runtime/durable/store\n(bbolt takes free pages in the order of a map, so not each run is the same)", fmt.Sprintf(format, arguments...), w.seed, w.t.Name())
}

// state returns the records after transaction n.
func (w *world) state(n int) map[string]string {
	if s := w.states[n]; s != nil {
		return s
	}
	m := store.NewMemory()
	must(w.t, m.Update(func(tx store.Tx) error {
		for i := 1; i <= n; i++ {
			change(tx, i)
		}
		return nil
	}))
	w.states[n] = dump(w.t, m)
	delete(w.states, n-5) // no check needs it
	return w.states[n]
}

// open starts a process, which opens the store. It reports false if the store is refused.
func (w *world) open() bool {
	w.t.Helper()
	defer store.HookDrop(func(*os.File) bool { w.disk.DropCache(fileName); return true })()
	defer store.HookOpenSync(func(*os.File) error { w.disk.Sync(fileName); return nil })()
	s, err := store.Open(w.dir, store.Options{})
	if err != nil {
		w.refuse(err)
		return false
	}
	w.store = s
	w.disk.SetFaults(w.faults)
	s.HookWrites(func(f store.WriteAt) store.WriteAt {
		return func(b []byte, at int64) (int, error) { return w.write(f, b, at) }
	})
	return true
}

// openFails opens the store while the sync of its file fails.
func (w *world) openFails() {
	w.t.Helper()
	defer store.HookOpenSync(func(*os.File) error { w.disk.FailSync(fileName); return syscall.EIO })()
	if _, err := store.Open(w.dir, store.Options{}); !errors.Is(err, syscall.EIO) {
		w.fatalf("opened although its sync failed: %v", err)
	}
}

// refuse is called when the store is not opened. Only a disk that lies is a reason.
func (w *world) refuse(err error) {
	w.t.Helper()
	_, damaged := errors.AsType[*store.DamageError](err)
	if w.faults == (disksim.Faults{}) || !damaged && !errors.Is(err, store.ErrNotAStore) {
		w.fatalf("the store is refused: %v", err)
	}
}

// write is called for each write of bbolt: pages, and then a meta page. bbolt syncs before
// and after the meta page.
func (w *world) write(f store.WriteAt, b []byte, at int64) (int, error) {
	w.writes++
	meta := at < 2*pageBytes
	if meta && w.fault == 1 {
		w.disk.FailSync(fileName)
		return 0, syscall.EIO
	}
	if meta && w.store.Syncs() {
		w.disk.Sync(fileName)
	}
	now := w.writes == w.crash || meta && w.crash > 0 // a commit with fewer writes
	before := w.rng.IntN(2) == 0
	if now && before && !w.failed {
		w.powerFails()
	}
	n, err := f(b, at)
	w.disk.Wrote(fileName, at, b[:n])
	if info, e := os.Stat(file(w.dir)); e == nil {
		w.disk.Length(fileName, info.Size())
	}
	if now && !w.failed {
		w.powerFails()
		if meta {
			w.torn++
		}
	}
	if meta && w.fault == 2 {
		w.disk.FailSync(fileName)
		return n, syscall.EIO
	}
	return n, err
}

// powerFails fills the next directory.
func (w *world) powerFails() {
	w.failed = true
	w.next = w.disk.Crash(filepath.Join(w.base, strconv.Itoa(w.dirs+1)), disksim.AnyLoss(w.rng))
}

// update carries out the next transaction.
func (w *world) update() {
	w.t.Helper()
	i := w.answered + 1
	w.begun = i
	w.state(i)
	w.writes = 0
	w.attempts++
	w.attempt[i] = w.attempts
	err := w.store.Update(func(tx store.Tx) error {
		change(tx, i)
		tx.Put(attemptTable, []byte("attempt"), []byte(strconv.Itoa(w.attempts)))
		return nil
	})
	switch {
	case w.failed:
	case w.fault != 0:
		if !errors.Is(err, store.ErrFailed) {
			w.fatalf("transaction %d, whose sync failed: %v", i, err)
		}
	case err != nil:
		w.fatalf("transaction %d: %v", i, err)
	default:
		before := w.disk.Lies()
		w.disk.Sync(fileName)
		w.lied[i] = w.disk.Lies() > before
		w.answered = i
	}
}

// close ends the process in an orderly way.
func (w *world) close() {
	w.t.Helper()
	w.writes = 0
	err := w.store.Close()
	if w.failed {
		return
	}
	must(w.t, err)
	before := w.disk.Lies()
	w.disk.Sync(fileName)
	w.lied[w.answered] = w.lied[w.answered] && w.disk.Lies() > before // there are two meta pages
}

// restart opens the store after the process or the power has ended, and checks its state.
func (w *world) restart() bool {
	w.t.Helper()
	if w.failed {
		w.failed = false
		w.move()
		w.disk = w.next
	}
	w.crash, w.fault = 0, 0
	if w.rng.IntN(10) == 0 {
		w.openFails()
	}
	if !w.open() {
		return false
	}
	n := last(w.store)
	least := w.answered
	for w.lied[least] {
		least--
	}
	if n < least || n > w.begun {
		w.fatalf("the store has %d transactions, %d were answered, %d begun", n, w.answered, w.begun)
	}
	got, attempt := dump(w.t, w.store), string(rune(attemptTable))+"attempt"
	// If the meta page of the last commit is lost, so can be the root page of the commit without
	// changes before it: two lies, after which an interrupted attempt with the same number shows.
	if n > 0 && !w.lied[w.answered] && got[attempt] != strconv.Itoa(w.attempt[n]) {
		w.fatalf("the store has attempt %s at transaction %d, the last one was %d", got[attempt], n, w.attempt[n])
	}
	if delete(got, attempt); !maps.Equal(got, w.state(n)) {
		w.fatalf("the store differs from transaction %d", n)
	}
	w.answered, w.begun = n, n
	clear(w.lied)
	return true
}

// readErrors opens a copy of the store while the disk has an error. The store is refused, and
// its file does not change.
func (w *world) readErrors() {
	w.t.Helper()
	dir := filepath.Join(w.base, "read")
	w.disk.Crash(dir, disksim.Sectors(0))
	before, err := os.ReadFile(file(dir))
	must(w.t, err)
	reads := &failingReads{at: w.rng.IntN(40)}
	restore := store.HookReads(func(r io.ReaderAt) io.ReaderAt { reads.ReaderAt = r; return reads })
	s, err := store.Open(dir, store.Options{})
	restore()
	if err == nil { // it has fewer reads
		must(w.t, s.Close())
		return
	}
	if _, damaged := errors.AsType[*store.DamageError](err); damaged || !errors.Is(err, syscall.EIO) {
		w.fatalf("a read error is reported as %v", err)
	}
	if after, err := os.ReadFile(file(dir)); err != nil || !bytes.Equal(before, after) {
		w.fatalf("a read error has changed the file (%v)", err)
	}
}

type failingReads struct {
	io.ReaderAt
	at int
}

func (r *failingReads) ReadAt(b []byte, at int64) (int, error) {
	if len(b) > 64<<10 { // reading ahead, in another goroutine
		return r.ReaderAt.ReadAt(b, at)
	}
	if r.at--; r.at == -1 {
		return 0, syscall.EIO
	}
	return r.ReaderAt.ReadAt(b, at)
}

// Kinds of failures.
const (
	afterAnswer = iota
	duringCommit
	duringClose
	failedSync
	cleanRestart
	failedReads
)

// allKinds has each kind as often as it is drawn.
var allKinds = []int{afterAnswer, duringCommit, duringCommit, duringCommit, duringCommit, duringClose, failedSync, failedSync, cleanRestart, failedReads}

// failure carries out some transactions, and ends the process: by a kill, a power failure, a
// failed sync, or in an orderly way.
func (w *world) failure(kind int) bool {
	w.t.Helper()
	for range w.rng.IntN(4) {
		w.update()
	}
	switch kind {
	case afterAnswer: // the power fails
		w.powerFails()
		_ = w.store.Close()
	case duringCommit:
		w.crash = 1 + w.rng.IntN(12)
		w.update()
		if !w.failed { // it had fewer writes
			w.powerFails()
		}
		_ = w.store.Close()
	case duringClose:
		w.crash = 1 + w.rng.IntN(3)
		w.close()
		if !w.failed {
			w.powerFails()
		}
	case failedSync: // and the process ends
		w.fault = 1 + w.rng.IntN(2)
		w.update()
		_ = w.store.Close()
	case cleanRestart: // then the power fails, or only the memory is dropped
		w.close()
		if w.rng.IntN(2) == 0 {
			w.powerFails()
		}
	case failedReads:
		if w.faults == (disksim.Faults{}) {
			w.readErrors()
		}
		w.powerFails()
		_ = w.store.Close()
	}
	return w.restart()
}

// simulate lets worlds fail until the wanted number of failures is reached. After a store was
// refused its world ends.
func simulate(t *testing.T, faults disksim.Faults, kinds ...int) {
	wanted := 40
	switch n, err := strconv.Atoi(os.Getenv("TOPOGEN_CRASHES")); {
	case err == nil:
		wanted = n
	case os.Getenv("CI") != "" && !race.Enabled: // one goroutine
		wanted = 300
	}
	first := uint64(1)
	if seed, err := strconv.ParseUint(os.Getenv("TOPOGEN_SEED"), 10, 64); err == nil {
		first, wanted = seed, 1
	}
	failures, refused, torn := 0, 0, 0
	for seed := first; failures < wanted; seed++ {
		w := newWorld(t, seed)
		w.faults = faults
		for opened := true; opened && failures < 20*int(seed-first+1); failures++ {
			if opened = w.failure(kinds[w.rng.IntN(len(kinds))]); !opened {
				refused++
			}
		}
		torn += w.torn
		_ = w.store.Close() // if its last failure was a refusal, it is closed
		must(t, os.RemoveAll(w.base))
	}
	t.Logf("%d failures, %d while a meta page was not synced, %d stores refused", failures, torn, refused)
	if wanted >= 200 && torn < failures/40 {
		t.Error("the power failed too seldom while a meta page was not synced: the test tests little")
	}
	if faults != (disksim.Faults{}) && wanted > 1 && refused < failures/100 {
		t.Error("too few stores were refused: the test tests little")
	}
}

// TestPowerFailure: on a disk that keeps what it has synced, the store opens after any failure, with
// all transactions that were answered, and perhaps the transaction that was under way.
func TestPowerFailure(t *testing.T) { simulate(t, disksim.Faults{}, allKinds...) }

// TestFailedSyncs: the same for syncs that fail, and commits of the next process that are interrupted.
func TestFailedSyncs(t *testing.T) { simulate(t, disksim.Faults{}, duringCommit, failedSync) }

// TestLyingDisk: if a disk has lost, torn or misdirected a synced write, the store is
// refused, or has all transactions that were answered. The exception is in the description of
// the package: a meta page that was not written leaves the state before.
func TestLyingDisk(t *testing.T) {
	simulate(t, disksim.Faults{Lost: 0.1, Torn: 0.1, Misdirected: 0.1}, allKinds...)
}

// TestSuspectedStore: after a sync has failed, a store is refused as long as the system may have
// pages in memory that the disk has not. The message of a second process still names the first.
func TestSuspectedStore(t *testing.T) {
	// An error of a write that is not for lack of space, and lack of space that a sync reports.
	for _, failure := range []error{syscall.EIO, &fs.PathError{Op: "write", Err: syscall.EIO}, &fs.PathError{Op: "sync", Err: syscall.ENOSPC}} {
		t.Run(failure.Error(), func(t *testing.T) { suspectedStore(t, failure) })
	}
}

func suspectedStore(t *testing.T, failure error) {
	dir := t.TempDir()
	s := open(t, dir, store.Options{})
	put(t, s, "key", "old")
	s.HookWrites(func(store.WriteAt) store.WriteAt {
		return func([]byte, int64) (int, error) { return 0, failure }
	})
	if err := s.Update(func(tx store.Tx) error { tx.Put(1, []byte("key"), []byte("new")); return nil }); !errors.Is(err, store.ErrFailed) {
		t.Fatal(err)
	}
	_ = s.Close() // it has failed
	dropped := false
	defer store.HookDrop(func(*os.File) bool { return dropped })()
	for range 2 {
		_, err := store.Open(dir, store.Options{})
		if err == nil || !strings.Contains(err.Error(), "a sync of "+file(dir)+" has failed") || !strings.Contains(err.Error(), "remove "+filepath.Join(dir, "lock")) {
			t.Fatalf("got %v", err)
		}
	}
	dropped = true
	s = open(t, dir, store.Options{})
	if got := get(t, s, "key"); got != "old" {
		t.Errorf("got %q", got)
	}
	if _, err := store.Open(dir, store.Options{}); !errors.Is(err, store.ErrInUse) || !strings.Contains(err.Error(), fmt.Sprintf("by process %d ", os.Getpid())) {
		t.Errorf("got %v", err)
	}
	must(t, s.Close())
	dropped = false // as in a file system in memory, which is no reason to refuse a store whose syncs succeed
	must(t, open(t, dir, store.Options{}).Close())
}

// TestRestoreOfSuspectedStore: a restored store is a new file, so the note of a failed sync does
// not concern it.
func TestRestoreOfSuspectedStore(t *testing.T) {
	from, content, _ := filled(t)
	dir := t.TempDir()
	must(t, open(t, dir, store.Options{}).Close())
	must(t, os.WriteFile(filepath.Join(dir, "lock"), []byte("A sync of the store has failed. process 1"), 0o600))
	defer store.HookDrop(func(*os.File) bool { return false })()
	if _, err := store.Open(dir, store.Options{}); err == nil || !strings.Contains(err.Error(), "a sync of") {
		t.Fatalf("got %v", err)
	}
	if _, _, err := store.Restore(file(from), dir, true); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir, store.Options{})
	if got := dump(t, s); !maps.Equal(got, content) {
		t.Errorf("the store has %d records, want %d", len(got), len(content))
	}
	must(t, s.Close())
}

// TestStartOfStore: Open syncs the file, makes the system forget it, and then reads it. A sync
// that fails marks the store. A start that succeeds removes the mark.
func TestStartOfStore(t *testing.T) {
	dir := t.TempDir()
	put(t, open(t, dir, store.Options{}), "key", "value")
	b, err := os.ReadFile(file(dir)) // the store is open, as after a kill
	must(t, err)
	dir = t.TempDir()
	must(t, os.WriteFile(file(dir), b, 0o600))
	var steps []string
	var failure error
	step := func(name string) {
		if len(steps) == 0 || steps[len(steps)-1] != name {
			steps = append(steps, name)
		}
	}
	dropped := false
	defer store.HookOpenSync(func(*os.File) error { step("sync"); return failure })()
	defer store.HookDrop(func(*os.File) bool { step("drop"); return dropped })()
	defer store.HookReads(func(r io.ReaderAt) io.ReaderAt { step("read"); return r })()
	failure = syscall.EIO
	if _, err := store.Open(dir, store.Options{}); !errors.Is(err, syscall.EIO) || !slices.Equal(steps, []string{"sync"}) {
		t.Fatalf("%v, %v", steps, err)
	}
	failure = nil
	for _, f := range []func() error{
		func() error { _, err := store.Open(dir, store.Options{}); return err },
		func() error { _, err := store.Verify(dir); return err },
		func() error { _, err := store.OpenReadOnly(dir, store.Options{}); return err },
	} {
		if err := f(); err == nil || !strings.Contains(err.Error(), "a sync of") {
			t.Errorf("a sync has failed, and the store is not refused: %v", err)
		}
	}
	dropped, steps = true, nil
	s := open(t, dir, store.Options{})
	if want := []string{"sync", "drop", "read"}; !slices.Equal(steps, want) {
		t.Errorf("got %v, want %v", steps, want)
	}
	must(t, s.Close())
	dropped = false
	steps = nil
	must(t, open(t, dir, store.Options{TrustFile: true}).Close())
}

// TestCloseFails: an error while the last commit is made is an error of Close, and marks the store.
func TestCloseFails(t *testing.T) {
	for _, failure := range []error{syscall.EIO, &fs.PathError{Op: "write", Err: syscall.ENOSPC}} {
		dir := t.TempDir()
		s := open(t, dir, store.Options{})
		put(t, s, "key", "value")
		s.HookWrites(func(f store.WriteAt) store.WriteAt {
			return func(b []byte, at int64) (int, error) {
				if at >= 2*pageBytes {
					return f(b, at)
				}
				_, _ = f(b[:60], at) // a part of the meta page
				return 60, failure
			}
		})
		if err := s.Close(); !errors.Is(err, failure) {
			t.Errorf("got %v", err)
		}
		restore := store.HookDrop(func(*os.File) bool { return false })
		if _, err := store.Open(dir, store.Options{}); err == nil || !strings.Contains(err.Error(), "a sync of") {
			t.Errorf("got %v", err)
		}
		restore()
	}
}

// TestReadErrors: an error of any read while the store is opened is an error, and not damage.
func TestReadErrors(t *testing.T) {
	dir, content, _ := filled(t)
	for at := 0; ; at++ {
		reads := &failingReads{at: at}
		restore := store.HookReads(func(r io.ReaderAt) io.ReaderAt { reads.ReaderAt = r; return reads })
		s, err := store.Open(dir, store.Options{})
		restore()
		if err == nil {
			if got := dump(t, s); at < 10 || !maps.Equal(got, content) {
				t.Errorf("after %d reads the store has %d records", at, len(got))
			}
			must(t, s.Close())
			return
		}
		if _, damaged := errors.AsType[*store.DamageError](err); damaged || !errors.Is(err, syscall.EIO) {
			t.Fatalf("read %d: %v", at, err)
		}
	}
}

// TestOldRootPage: the tables of another commit are refused, also in a store that was closed, and
// also if its file is not checked.
func TestOldRootPage(t *testing.T) {
	s := open(t, memoryDir(t), store.Options{})
	disk := memoryDir(t)
	fill(t, s)
	refused := 0
	for i := range 20 {
		before := read(t, s.File())
		var root int64
		s.HookWrites(func(f store.WriteAt) store.WriteAt {
			return func(b []byte, at int64) (int, error) {
				if at >= 2*pageBytes {
					root = at
				}
				return f(b, at)
			}
		})
		must(t, s.Update(func(tx store.Tx) error { tx.Put(5, []byte("small"), fmt.Append(nil, i)); return nil }))
		after, closed := read(t, s.File()), memoryDir(t)
		must(t, os.WriteFile(file(closed), after, 0o600))
		must(t, open(t, closed, store.Options{}).Close())
		ended, err := os.ReadFile(file(closed))
		must(t, err)
		for _, b := range [][]byte{after, ended} {
			if int(root)+pageBytes > len(before) {
				continue
			}
			b = bytes.Clone(b)
			copy(b[root:], before[root:root+pageBytes])
			for _, trust := range []bool{false, true} {
				must(t, os.WriteFile(file(disk), b, 0o600))
				s, err := store.Open(disk, store.Options{TrustFile: trust})
				if err == nil {
					t.Errorf("commit %d, trust %v: opened", i, trust)
					must(t, s.Close())
				}
				if _, ok := errors.AsType[*store.DamageError](err); ok {
					refused++
				}
			}
		}
	}
	if refused < 10 {
		t.Errorf("%d stores were refused as damaged", refused)
	}
}

// TestCreationIsInterrupted: the power fails while a store is created. The next process
// creates it, or has it.
func TestCreationIsInterrupted(t *testing.T) {
	base := memoryDir(t)
	dir, after := filepath.Join(base, "dir"), filepath.Join(base, "after")
	must(t, os.Mkdir(dir, 0o700))
	rng := rand.New(rand.NewPCG(1, 31))
	disk := disksim.New(dir, rng)
	s := open(t, dir, store.Options{})
	must(t, os.Rename(file(dir), filepath.Join(dir, "promises.new"))) // as before it is complete
	disk.Observe()
	check := func() {
		t.Helper()
		for range 30 {
			disk.Crash(after, disksim.AnyLoss(rng))
			s := open(t, after, store.Options{})
			put(t, s, "key", "value")
			must(t, s.Close())
		}
	}
	check()
	disk.Sync("promises.new")
	must(t, os.Rename(filepath.Join(dir, "promises.new"), file(dir)))
	disk.Observe()
	check()
	disk.SyncDir()
	check()
	must(t, s.Close())
}
