package wal_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/topogen/topogen/runtime/internal/race"
	"github.com/topogen/topogen/runtime/raft/wal"
)

// callsOfHistory is how many calls a history has: several segments and a snapshot or two.
const callsOfHistory = 40

// histories returns the seeds of histories to try, with what to call them by.
func histories(t *testing.T, each func(t *testing.T, seed uint64, mode wal.Sync)) {
	n := uint64(8)
	if thorough(2) == 1 && !race.Enabled { // the test is in one goroutine
		n = 30
	}
	for _, mode := range []wal.Sync{wal.Always, wal.Interval, wal.None} {
		t.Run(mode.String(), func(t *testing.T) {
			first, end := seeds(n)
			for seed := first; seed < end && !t.Failed(); seed++ {
				each(t, seed, mode)
				if t.Failed() {
					t.Errorf("again: TOPOGEN_SEED=%d go test -run %s ./runtime/raft/wal", seed, t.Name())
				}
			}
		})
	}
}

// TestPowerFailures: whatever sectors or pages of what was not synced are missing after
// a power failure, in whatever mode, the log opens, all that was synced is there, and
// what is there was saved in this order. It is so, too, if the power fails once more while
// the log is opened.
func TestPowerFailures(t *testing.T) {
	dir := filepath.Join(inMemory(t), "log")
	images, cuts := 0, 0
	histories(t, func(t *testing.T, seed uint64, mode wal.Sync) {
		h := newHistory(t, seed, mode)
		h.power = func() {
			img, lost := h.powerFailure()
			if !lost && h.rng.IntN(10) > 0 {
				return
			}
			images++
			img.write(t, dir)
			if r, err := wal.Verify(dir); err == nil && r.Cut != nil {
				cuts++
				h.interrupted(img, dir, r.Cut)
				img.write(t, dir)
			}
			l, s, err := wal.Open(dir, own, wal.Options{Sync: wal.Sync(h.rng.IntN(3)), Interval: time.Hour})
			if err != nil {
				t.Errorf("seed %d, call %d: %v", seed, h.calls, err)
				return
			}
			if !slices.ContainsFunc(h.mayLeave(), func(p model) bool { return same(p.stored(), s) }) {
				t.Errorf("seed %d, call %d: none of %d, the first of which\n%s", seed, h.calls, len(h.mayLeave()), diff(h.past[h.safe].stored(), s))
			}
			h.checkBody(s)
			goOn(t, l, s, dir)
		}
		for range callsOfHistory {
			h.act()
		}
		must(t, h.log.Close())
	})
	t.Logf("%d images, in %d of which something is cut off", images, cuts)
}

// TestPowerFailsEarly: what a log saves first, and what a process saves first, may be
// missing as anything else.
func TestPowerFailsEarly(t *testing.T) {
	dir := filepath.Join(inMemory(t), "log")
	long := func(index uint64) []*raftpb.Entry {
		return []*raftpb.Entry{entry(index, 1, ""), entry(index+1, 1, strings.Repeat("long", 2000))}
	}
	for name, c := range map[string]struct {
		first wal.Sync // mode of the process before, if there is one
		save  func(*history)
	}{
		"entries":                          {-1, func(h *history) { h.save(state(1, 1, 0), long(1), false) }},
		"entries without a state":          {-1, func(h *history) { h.save(nil, long(1), false) }},
		"a snapshot":                       {-1, func(h *history) { h.snapshotOf(members(100)...) }},
		"entries of a process":             {wal.Always, func(h *history) { h.save(state(1, 1, 0), long(1), false) }},
		"entries behind a full segment":    {wal.Always, func(h *history) { h.save(nil, long(2), false) }},
		"more of a process that is as lax": {wal.None, func(h *history) { h.save(nil, long(1), false); h.save(nil, long(3), false) }},
	} {
		for _, mode := range []wal.Sync{wal.Interval, wal.None} {
			t.Run(fmt.Sprint(name, ", ", mode), func(t *testing.T) {
				images := 0
				for seed := range uint64(8) {
					h := newHistory(t, seed, max(c.first, 0))
					h.sync = mode
					if c.first >= 0 {
						h.save(state(1, 1, 0), nil, true)
						if name == "entries behind a full segment" { // it is full when the log is closed
							full := segmentBytes - used(h.lastSegment().now()) - int(seed)*8
							h.save(nil, []*raftpb.Entry{entry(1, 1, strings.Repeat("x", full))}, true)
						}
						must(t, h.log.Sync())
					}
					must(t, h.log.Close())
					if c.first < 0 {
						must(t, os.RemoveAll(h.dir))
						*h = history{t: t, rng: h.rng, dir: h.dir, sync: mode, model: model{state: state(0, 0, 0)}, power: func() {}, bodies: make(map[uint64][]byte)}
						h.past = []model{h.model}
					}
					h.look()
					h.open()
					h.power = func() {
						for range 4 {
							img, lost := h.powerFailure()
							if !lost {
								continue
							}
							images++
							img.write(t, dir)
							l, s, err := wal.Open(dir, own, wal.Options{})
							must(t, err)
							if !slices.ContainsFunc(h.mayLeave(), func(p model) bool { return same(p.stored(), s) }) {
								t.Errorf("seed %d: none of %d, the first of which\n%s", seed, len(h.mayLeave()), diff(h.past[h.safe].stored(), s))
							}
							goOn(t, l, s, dir)
						}
					}
					c.save(h)
					must(t, h.log.Close())
				}
				if images < 5 {
					t.Errorf("only %d images", images)
				}
			})
		}
	}
}

// members are so many that the record of a snapshot is in several sectors.
func members(n uint64) (ids []uint64) {
	for i := range n {
		ids = append(ids, math.MaxUint64-i)
	}
	return ids
}

// interrupted has the power fail while the log cuts off what is incomplete: some of the
// segments are removed; when all are, some of the sectors are zeros.
func (h *history) interrupted(img image, dir string, c *wal.Cut) {
	gone := h.rng.IntN(len(c.Removed) + 1)
	for _, path := range c.Removed[:gone] {
		delete(img, strings.TrimPrefix(path, dir+"/"))
	}
	if gone < len(c.Removed) {
		return
	}
	b := img[strings.TrimPrefix(c.File, dir+"/")]
	for at := int(c.Offset); at < len(b); at += sector - at%sector {
		if h.rng.IntN(2) == 0 {
			clear(b[at:min(at+sector-at%sector, len(b))])
		}
	}
}

// goOn saves more to a log that was opened, and opens it again: nothing of what was cut
// off comes back.
func goOn(t *testing.T, l wal.Log, s wal.Stored, dir string) {
	t.Helper()
	last := s.Snapshot.GetMetadata().GetIndex() + uint64(len(s.Entries))
	term := s.State.GetTerm() + 1
	s.Entries = append(slices.Clip(s.Entries), entry(last+1, term, "more"))
	s.State = state(term, 2, s.State.GetCommit())
	must(t, l.Save(s.State, []*raftpb.Entry{entry(last+1, term, "more")}, true))
	l, again := reopened(t, l, dir)
	if d := diff(s, again); d != "" {
		t.Error(d)
	}
	must(t, l.Close())
}

// TestDamageAfterSync: zeroed sectors and pages, flipped bits and shorter files are
// refused, or the log is what a power failure may leave: everything is there that was
// synced when the last save began that is still there as a whole.
func TestDamageAfterSync(t *testing.T) {
	dir := filepath.Join(inMemory(t), "log")
	var opened, refused int
	histories(t, func(t *testing.T, seed uint64, mode wal.Sync) {
		h := newHistory(t, seed, mode)
		for range callsOfHistory {
			h.act()
		}
		if h.rng.IntN(2) == 0 {
			h.close()
		} else {
			h.call(true, h.log.Sync)
		}
		for range 40 {
			img := make(image)
			for _, f := range h.files {
				img[f.name] = bytes.Clone(f.now())
			}
			what := h.damage(img)
			img.write(t, dir)
			l, s, err := wal.Open(dir, own, wal.Options{Sync: mode, Interval: time.Hour})
			if errors.Is(err, wal.ErrDamaged) {
				refused++
				continue
			}
			must(t, err)
			opened++
			if what.short {
				t.Errorf("%v: it opens", what)
			}
			if least := h.proven(img); !slices.ContainsFunc(h.past[least:], func(p model) bool { return same(p.stored(), s) }) {
				t.Errorf("%v: none of %d, the first of which\n%s", what, len(h.past)-least, diff(h.past[least].stored(), s))
			}
			must(t, l.Close())
		}
		must(t, h.log.Close())
	})
	t.Logf("%d refused, %d opened", refused, opened)
}

// proven is the number of the last model that a call which is there as a whole says was
// synced.
func (h *history) proven(img image) (least int) {
	for _, p := range h.proofs {
		if b := img[p.name]; len(b) >= p.end && bytes.Equal(b[p.begin:p.end], p.content) {
			least = max(least, p.model)
		}
	}
	return least
}

// spoiled says how a segment was damaged.
type spoiled struct {
	string
	short bool // it has less than the length that a segment has from its beginning
}

func (h *history) damage(img image) spoiled {
	var names []string
	for _, f := range h.files {
		if f.segment() {
			names = append(names, f.name)
		}
	}
	name := names[h.rng.IntN(len(names))]
	if h.rng.IntN(2) == 0 {
		name = names[len(names)-1]
	}
	b := img[name]
	n := used(b)
	switch h.rng.IntN(4) {
	case 0:
		bit := h.rng.IntN(n * 8)
		b[bit/8] ^= 1 << (bit % 8)
		return spoiled{string: fmt.Sprintf("bit %d of byte %d of %s", bit%8, bit/8, name)}
	case 1:
		size := h.rng.IntN(len(b))
		img[name] = b[:size]
		return spoiled{fmt.Sprintf("%s has %d of %d bytes", name, size, len(b)), size < segmentBytes}
	}
	unit := []int{sector, 4096}[h.rng.IntN(2)]
	var zeroed []int
	for range 1 + h.rng.IntN(3) {
		at := h.rng.IntN(n) / unit * unit
		clear(b[at:min(at+unit, len(b))])
		zeroed = append(zeroed, at)
	}
	return spoiled{string: fmt.Sprintf("%s has zeros at %v, %d bytes each", name, zeroed, unit)}
}
