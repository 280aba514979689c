//go:build unix

package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/topogen/topogen/internal/test/disksim"
	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/durable/store"
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

	faults     disksim.Faults
	liesBefore int          // lies of the disk before this process
	lied       map[int]bool // the commits after which a sync of the meta page was a lie
}

func newWorld(t *testing.T, seed uint64, rng *rand.Rand) *world {
	w := &world{t: t, seed: seed, rng: rng, base: memdir.New(t), states: map[int]map[string]string{0: {}}, attempt: map[int]int{}, lied: map[int]bool{}}
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
	w.t.Fatalf("%s\n%s -count 200 -failfast\n(bbolt takes free pages in the order of a map, so not each run is the same)", fmt.Sprintf(format, arguments...), speed.Repeat(w.t, w.seed))
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
	lied := w.disk.Lies() > w.liesBefore
	if w.failed {
		w.failed = false
		w.move()
		w.disk = w.next
	}
	w.liesBefore = w.disk.Lies()
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
	// A commit that was interrupted has the number of the commit without changes after it. If the
	// disk loses the root page of the latter, the former shows. It was not answered, and no commit
	// that was answered is missing. If the meta page of an answered commit is lost, so it can be.
	if shown, err := strconv.Atoi(got[attempt]); n > 0 && (err != nil || shown != w.attempt[n]) {
		if interrupted := w.lied[w.answered] || n > w.answered && lied; !interrupted {
			w.fatalf("the store has attempt %q at transaction %d, the last one was %d", got[attempt], n, w.attempt[n])
		}
		w.attempt[n] = shown
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

// simulate lets the store of each seed fail again and again. After it was refused, the seed goes
// on with a new store.
func simulate(t *testing.T, faults disksim.Faults, kinds ...int) {
	speed.NoRace(t)
	const each = 20 // failures of a seed
	first, end := speed.Seeds(t, 2, 15, 1000)
	failures, refused, torn := each*int(end-first), 0, 0
	for seed := first; seed < end; seed++ {
		rng := rand.New(rand.NewPCG(seed, 31))
		for n := 0; n < each; {
			w := newWorld(t, seed, rng)
			w.faults = faults
			for opened := true; opened && n < each; n++ {
				if opened = w.failure(kinds[rng.IntN(len(kinds))]); !opened {
					refused++
				}
			}
			torn += w.torn
			_ = w.store.Close() // if its last failure was a refusal, it is closed
			must(t, os.RemoveAll(w.base))
		}
	}
	t.Logf("%d failures, %d while a meta page was not synced, %d stores refused", failures, torn, refused)
	if failures >= 200 && torn < failures/40 {
		t.Error("the power failed too seldom while a meta page was not synced: the test tests little")
	}
	if faults != (disksim.Faults{}) && failures >= 200 && refused < failures/100 {
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
	speed.NoRace(t)
	simulate(t, disksim.Faults{Lost: 0.1, Torn: 0.1, Misdirected: 0.1}, allKinds...)
}
