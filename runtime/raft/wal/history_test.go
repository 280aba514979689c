package wal_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/cryptotest"
	"time"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/topogen/topogen/runtime/raft/wal"
)

// sector is the smallest unit that a disk writes atomically, in bytes.
const sector = 512

// diskFile is a file with all contents that the disk may have after a power failure.
type diskFile struct {
	name     string // below the directory of the log
	info     os.FileInfo
	versions [][]byte // the first is durable; after a power failure each sector may come from any of them
}

func (f *diskFile) current() []byte { return f.versions[len(f.versions)-1] }

func (f *diskFile) segment() bool { return strings.HasSuffix(f.name, ".wal") }

// image is the content of each file in the directory of a log.
type image map[string][]byte

// write writes the files to a new directory.
func (img image) write(t *testing.T, dir string) {
	t.Helper()
	must(t, os.RemoveAll(dir))
	for _, part := range []string{"wal", "snap"} {
		must(t, os.MkdirAll(filepath.Join(dir, part), 0o700))
	}
	for name, b := range img {
		must(t, os.WriteFile(filepath.Join(dir, name), b, 0o600))
	}
}

// written describes the bytes that one call wrote to the segment that was the last one
// before the call. These bytes include a mark, which says which earlier calls were synced.
type written struct {
	name       string
	begin, end int
	content    []byte // between them
	model      int    // index in history.past of the model that was synced when the call began
}

// history writes a log by random calls. At each moment it can compute the files that a power
// failure may leave.
type history struct {
	t        *testing.T
	rng      *rand.Rand
	dir      string
	log      wal.Log
	sync     wal.Sync
	model    model
	past     []model           // all contents of the log so far; the last is the current one
	bodies   map[uint64][]byte // bodies of snapshots, by index
	syncedAt int               // index in past of the synced model: a power failure leaves it or a later one
	term     uint64
	calls    int

	writes []written // of all calls

	files   []*diskFile // segments and snapshots, in order of their names
	removed []*diskFile // files that the last call removed, in order
	created int         // number of segments that the current call has started
	temps   []*diskFile // files that were synced before they got the name of a segment

	power func() // called at each moment at which the power may fail
}

func newHistory(t *testing.T, seed uint64, sync wal.Sync) *history {
	cryptotest.SetGlobalRandom(t, seed) // the log generates its token with it
	h := &history{t: t, rng: rand.New(rand.NewPCG(seed, 0)), dir: filepath.Join(inMemory(t), "log"), sync: sync, power: func() {}, bodies: make(map[uint64][]byte)}
	h.model = model{state: state(0, 0, 0)}
	h.past = []model{h.model}
	h.open()
	return h
}

// open opens the log, which syncs all of it.
func (h *history) open() {
	h.t.Helper()
	var s wal.Stored
	var err error
	h.log = nil
	h.log, s, err = wal.OpenWatched(h.dir, own, wal.Options{Sync: h.sync, Interval: time.Hour}, h.beforeSync)
	must(h.t, err)
	if d := diff(h.model.stored(), s); d != "" {
		h.t.Error(d)
	}
	h.readFiles()
	h.synced()
	if h.sync == wal.Always && h.calls == 0 { // the log syncs its first mark separately, which the test does not model
		h.save(state(1, 1, 0), nil, true)
	}
}

// reopen closes the log and opens it again in a random mode.
func (h *history) reopen() {
	h.t.Helper()
	h.close()
	h.sync = wal.Sync(h.rng.IntN(3))
	h.open()
}

// beforeSync is called by the log before it syncs a file. If the power fails now, the file
// is not synced yet.
func (h *history) beforeSync(file *os.File) error {
	h.readFiles()
	h.power()
	info, err := file.Stat()
	must(h.t, err)
	for _, f := range h.files {
		if os.SameFile(f.info, info) {
			f.versions = f.versions[len(f.versions)-1:]
			return nil
		}
	}
	b, err := os.ReadFile(file.Name())
	must(h.t, err)
	h.temps = append(h.temps, &diskFile{info: info, versions: [][]byte{b}})
	return nil
}

// readFiles updates the current contents of the files.
func (h *history) readFiles() {
	h.t.Helper()
	var found []*diskFile
	for _, path := range append(files(h.t, h.dir, "wal", "*.wal"), files(h.t, h.dir, "snap", "*.snap")...) {
		b, err := os.ReadFile(path)
		must(h.t, err)
		info, err := os.Stat(path)
		must(h.t, err)
		f := h.file(strings.TrimPrefix(path, h.dir+"/"))
		if f.info == nil {
			f.info = info
			if f.segment() {
				h.created++
			}
			f.versions = [][]byte{h.named(f, b)}
		}
		if !bytes.Equal(f.current(), b) {
			f.versions = append(f.versions, b)
		}
		found = append(found, f)
	}
	for _, segments := range []bool{false, true} { // the order in which the log removes them
		for _, f := range h.files {
			if f.segment() == segments && !slices.Contains(found, f) {
				h.removed = append(h.removed, f)
			}
		}
	}
	h.files = found
}

// strict reports whether the engine syncs a segment, and the head of the next segment, before
// the next segment gets its name.
func (h *history) strict() bool { return h.log == nil || wal.EngineSyncs(h.log) }

func (h *history) file(name string) *diskFile {
	for _, f := range h.files {
		if f.name == name {
			return f
		}
	}
	return &diskFile{name: name}
}

// named returns the durable content of a file at the time when its name becomes durable.
func (h *history) named(f *diskFile, content []byte) []byte {
	switch {
	case !f.segment(), h.calls == 0:
		return content
	case h.strict(): // its length and the three records of its head are durable
		b := make([]byte, segmentBytes)
		copy(b, content[:offsets(content)[3]])
		return b
	}
	for _, temp := range h.temps {
		if os.SameFile(temp.info, f.info) {
			return temp.current()
		}
	}
	return nil
}

// offsets returns the offsets of the records of a segment, and of the end of the last one.
func offsets(content []byte) []int {
	at := []int{0}
	for end := 0; end+8 <= len(content) && content[end] != 0; at = append(at, end) {
		n := int(content[end]) | int(content[end+1])<<8 | int(content[end+2])<<16
		end += 8 + n + -n&7
	}
	return at
}

// synced notes that all data was synced.
func (h *history) synced() {
	for _, f := range h.files {
		f.versions = f.versions[len(f.versions)-1:]
	}
	h.syncedAt = len(h.past) - 1
}

// possible returns the models that a power failure may leave.
func (h *history) possible() []model { return h.past[h.syncedAt:] }

// lastSegment returns the segment that the log writes to.
func (h *history) lastSegment() *diskFile {
	var last *diskFile
	for _, f := range h.files {
		if f.segment() {
			last = f
		}
	}
	return last
}

// used returns the offset of the end of the last record of a segment.
func used(content []byte) int {
	at := offsets(content)
	return at[len(at)-1]
}

// step adds a content that a power failure may leave.
func (h *history) step(now model) {
	h.model = now
	h.past = append(h.past, now)
}

// call calls the log. The power may fail before the sync of the call, and after the call has
// returned.
func (h *history) call(syncs bool, f func() error) {
	h.t.Helper()
	h.calls++
	h.removed, h.created = nil, 0
	last := h.lastSegment()
	p := written{name: last.name, begin: used(last.current()), model: h.syncedAt}
	must(h.t, f())
	h.readFiles()
	if p.end = used(last.current()); p.end > p.begin {
		p.content = last.current()[p.begin:p.end]
		h.writes = append(h.writes, p)
	}
	h.power()
	if syncs {
		h.synced()
		h.power()
	}
}

// close closes the log, which writes a mark that all of it was synced.
func (h *history) close() {
	h.t.Helper()
	h.call(true, h.log.Close)
	if n := len(h.writes); n > 0 && h.writes[n-1].end == used(h.file(h.writes[n-1].name).current()) {
		h.writes[n-1].model = h.syncedAt
	}
}

func (h *history) save(s *raftpb.HardState, entries []*raftpb.Entry, sync bool) {
	h.t.Helper()
	after := h.model.state
	if s != nil {
		after = s
	}
	before := after // its commit index does not include the new entries
	if len(entries) > 0 {
		before = state(after.GetTerm(), after.GetVote(), min(after.GetCommit(), entries[0].GetIndex()-1))
		if proto.Equal(before, state(0, 0, 0)) { // the log does not save an empty state; it saves the term of the entries
			before = state(entries[0].GetTerm(), 0, 0)
		}
	}
	h.step(h.model.withState(before))
	for _, e := range entries {
		h.step(h.model.withEntry(e))
	}
	h.step(h.model.withState(after))
	h.call(h.sync == wal.Always && (sync || len(entries) > 0), func() error { return h.log.Save(s, entries, sync) })
}

// act does a random call.
func (h *history) act() {
	h.t.Helper()
	switch n := h.rng.IntN(30); {
	case n == 0:
		h.snapshot()
	case n == 1:
		h.call(true, h.log.Sync)
	case n == 2 && h.sync == wal.Interval:
		h.call(true, func() error { wal.SyncInBackground(h.log); return nil })
	case n == 3:
		h.reopen()
	case n < 9:
		committed := h.model.state.GetCommit()
		h.save(state(h.term+1, 1, committed+h.rng.Uint64N(h.model.last()-committed+1)), nil, h.rng.IntN(2) == 0)
	default:
		h.append()
	}
}

// append saves entries. Sometimes they replace entries that are not committed.
func (h *history) append() {
	committed := h.model.state.GetCommit()
	first := h.model.last() + 1
	if first > committed+1 && h.rng.IntN(4) == 0 {
		first -= 1 + h.rng.Uint64N(first-committed-1)
		h.term++
	}
	var entries []*raftpb.Entry
	for i := range 1 + h.rng.Uint64N(4) {
		entries = append(entries, &raftpb.Entry{Index: new(first + i), Term: new(h.term + 1), Data: h.data()})
	}
	var s *raftpb.HardState
	if h.rng.IntN(3) > 0 || h.term+1 > h.model.state.GetTerm() {
		s = state(h.term+1, 1, committed+h.rng.Uint64N(first+uint64(len(entries))-committed))
	}
	h.save(s, entries, h.rng.IntN(4) > 0)
}

// data returns the data of an entry. Some data fills whole sectors, and some data is zeros.
func (h *history) data() []byte {
	n := h.rng.IntN(200)
	if h.rng.IntN(5) == 0 {
		n = h.rng.IntN(5000)
	}
	b := make([]byte, n)
	if h.rng.IntN(4) == 0 {
		return b
	}
	for i := range b {
		b[i] = byte(h.rng.Uint32())
	}
	return b
}

func (h *history) snapshot() { h.snapshotOf(1) }

func (h *history) snapshotOf(voters ...uint64) {
	h.t.Helper()
	index := h.model.base() + 1 + h.rng.Uint64N(h.model.last()-h.model.base()+1)
	term := h.model.term(index)
	if term == 0 || h.rng.IntN(4) == 0 { // from another node, which has more entries
		index, term = h.model.last()+1+h.rng.Uint64N(3), h.term+1
	}
	s := snapshot(index, term, fmt.Sprint(index))
	s.Metadata.ConfState.Voters = voters
	h.step(h.model.withSnapshot(s))
	if h.rng.IntN(2) == 0 {
		h.call(true, func() error { return h.log.SaveSnapshot(s) })
		return
	}
	body := h.data()
	h.bodies[index] = body
	h.call(true, func() error {
		w, err := h.log.CreateSnapshot()
		if err != nil {
			return err
		}
		_, err = w.Write(body)
		return errors.Join(err, w.Commit(s))
	})
}

// checkBody compares the body of the snapshot that was read by Open.
func (h *history) checkBody(s wal.Stored) {
	h.t.Helper()
	index := s.Snapshot.GetMetadata().GetIndex()
	want, ok := h.bodies[index]
	if !ok {
		if s.BodySize > 0 {
			h.t.Errorf("the snapshot at %d must not have a body, got %d bytes", index, s.BodySize)
		}
		return
	}
	r, err := s.OpenBody()
	must(h.t, err)
	got, err := io.ReadAll(r)
	must(h.t, err)
	if !bytes.Equal(got, want) || s.BodySize != int64(len(want)) {
		h.t.Errorf("the body of the snapshot at %d must be the saved %d bytes, got %d other bytes", index, len(want), len(got))
	}
	must(h.t, r.Close())
}

// powerFailure returns files that a power failure at this moment may leave. It also reports
// whether any written data is missing in them.
func (h *history) powerFailure() (image, bool) {
	img := make(image)
	whole := !slices.ContainsFunc(h.files, func(f *diskFile) bool { return len(f.versions) > 1 })
	back := len(h.removed) // the log removes files only after the files that replace them are synced
	if whole {
		back = h.rng.IntN(back + 1)
	}
	for _, f := range h.removed[len(h.removed)-back:] {
		img[f.name] = f.current()
	}
	if h.rng.IntN(4) == 0 {
		img["snap/123.tmp"] = h.data() // a snapshot that was being written
	}
	segments := slices.Clone(h.files)
	segments = slices.DeleteFunc(segments, func(f *diskFile) bool { return !f.segment() })
	if !whole { // the power may have failed before the call started a segment
		segments = segments[:len(segments)-h.rng.IntN(min(h.created, len(segments)-1)+1)]
	}
	unit := []int{sector, 4096}[h.rng.IntN(2)]
	share := []int{5, 50, 95, 100}[h.rng.IntN(4)]
	for _, f := range h.files {
		if f.segment() && !slices.Contains(segments, f) {
			whole = false
			continue
		}
		if len(f.versions) == 1 || h.strict() && f != segments[len(segments)-1] { // a segment is synced before the next one exists
			img[f.name] = f.current()
			continue
		}
		img[f.name] = h.missing(f, unit, share)
		whole = whole && bytes.Equal(img[f.name], f.current())
	}
	return img, !whole
}

// missing returns the file without some of its unsynced data. share percent of its units come
// from random versions. If the length is not durable, the end of the file may be missing.
func (h *history) missing(f *diskFile, unit, share int) []byte {
	b := bytes.Clone(f.current())
	for at := 0; at < len(b); at += unit {
		if h.rng.IntN(100) >= share {
			continue
		}
		old := f.versions[h.rng.IntN(len(f.versions))]
		clear(b[at:min(at+unit, len(b))])
		if at < len(old) {
			copy(b[at:min(at+unit, len(b))], old[at:])
		}
	}
	if durable := len(f.versions[0]); durable < len(b) && h.rng.IntN(2) == 0 {
		b = b[:durable+h.rng.IntN(len(b)-durable)]
	}
	return b
}
