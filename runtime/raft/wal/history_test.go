package wal_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"testing/cryptotest"
	"time"

	"fmt"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/raft/wal"
)

// history writes a log by random calls, and knows what a power failure may leave of it.
type history struct {
	t        *testing.T
	rng      *rand.Rand
	dir      string
	log      wal.Log // nil: closed
	sync     wal.Sync
	model    model
	past     []model           // all contents of the log so far; the last is the current one
	bodies   map[uint64][]byte // bodies of snapshots, by index
	syncedAt int               // index in past of the synced model: a power failure leaves it or a later one
	term     uint64

	run func(f func() error) bool // calls the log; false: the call was interrupted
}

func newHistory(t *testing.T, seed uint64, sync wal.Sync) *history {
	cryptotest.SetGlobalRandom(t, seed) // the log generates its token with it
	h := &history{t: t, rng: rand.New(rand.NewPCG(seed, 0)), dir: filepath.Join(memdir.New(t), "log"), sync: sync, bodies: make(map[uint64][]byte)}
	h.model = model{state: state(0, 0, 0)}
	h.past = []model{h.model}
	h.run = func(f func() error) bool { must(t, f()); return true }
	return h
}

// histories calls each for a number of seeds in each mode, which depends on the speed of the run.
// After a failure it prints the command that repeats it.
func histories(t *testing.T, quick, landing, long uint64, each func(t *testing.T, seed uint64, mode wal.Sync)) {
	for _, mode := range []wal.Sync{wal.Always, wal.Interval, wal.None} {
		t.Run(mode.String(), func(t *testing.T) {
			first, end := speed.Seeds(t, quick, landing, long)
			for seed := first; seed < end && !t.Failed(); seed++ {
				each(t, seed, mode)
				if t.Failed() {
					t.Error(speed.Repeat(t, seed))
				}
			}
		})
	}
}

// open opens the log, which syncs all of it.
func (h *history) open() {
	h.t.Helper()
	var s wal.Stored
	var err error
	h.log, s, err = wal.Open(h.dir, own, h.options())
	must(h.t, err)
	if d := diff(h.model.stored(), s); d != "" {
		h.t.Error(d)
	}
	h.synced()
}

// options returns the options of the log. The test decides when a log in mode Interval syncs.
func (h *history) options() wal.Options {
	return wal.Options{Sync: h.sync, Interval: time.Hour}
}

// synced notes that all data was synced.
func (h *history) synced() { h.syncedAt = len(h.past) - 1 }

// step adds a content that a power failure may leave.
func (h *history) step(now model) {
	h.model = now
	h.past = append(h.past, now)
}

// call calls the log.
func (h *history) call(syncs bool, f func() error) {
	h.t.Helper()
	if h.run(f) && syncs {
		h.synced()
	}
}

// close closes the log, which writes a mark that all of it was synced.
func (h *history) close() {
	h.t.Helper()
	h.call(true, h.log.Close)
	h.log = nil
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
		h.close()
		h.sync = wal.Sync(h.rng.IntN(3))
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
		delete(h.bodies, index) // an earlier snapshot at this index has failed
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
