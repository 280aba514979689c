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

// callsOfHistory is the number of calls of a history. They write several segments and one or
// two snapshots.
const callsOfHistory = 40

// histories calls each for a number of seeds in each mode. After a failure it prints the
// command that repeats it.
func histories(t *testing.T, each func(t *testing.T, seed uint64, mode wal.Sync)) {
	n := uint64(8)
	switch {
	case race.Enabled: // the tests have one goroutine
		n = 3
	case os.Getenv("CI") != "":
		n = 30
	}
	for _, mode := range []wal.Sync{wal.Always, wal.Interval, wal.None} {
		t.Run(mode.String(), func(t *testing.T) {
			first, end := seeds(n)
			for seed := first; seed < end && !t.Failed(); seed++ {
				each(t, seed, mode)
				if t.Failed() {
					t.Errorf("repeat with: TOPOGEN_SEED=%d go test -run %s ./runtime/raft/wal", seed, t.Name())
				}
			}
		})
	}
}

// TestPowerFailures: after a power failure the log opens in every mode, no matter which sectors
// or pages of unsynced data are missing. It has all synced records, and a prefix of the later
// ones. This also holds if the power fails again while the log is opened.
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
			if !slices.ContainsFunc(h.possible(), func(p model) bool { return same(p.stored(), s) }) {
				t.Errorf("seed %d, call %d: Open must return one of %d possible contents; the first of them has this\n%s", seed, h.calls, len(h.possible()), diff(h.past[h.syncedAt].stored(), s))
			}
			h.checkBody(s)
			saveAndReopen(t, l, s, dir)
		}
		for range callsOfHistory {
			h.act()
		}
		must(t, h.log.Close())
	})
	t.Logf("%d images, in %d of them Open removed records", images, cuts)
}

// TestPowerFailsEarly: a power failure may also remove the first records of a log, and the first
// records that a process writes.
func TestPowerFailsEarly(t *testing.T) {
	dir := filepath.Join(inMemory(t), "log")
	long := func(index uint64) []*raftpb.Entry {
		return []*raftpb.Entry{entry(index, 1, ""), entry(index+1, 1, strings.Repeat("long", 2000))}
	}
	for name, c := range map[string]struct {
		first wal.Sync // mode of the previous process; -1: there was none
		save  func(*history)
	}{
		"entries":                       {-1, func(h *history) { h.save(state(1, 1, 0), long(1), false) }},
		"entries without a state":       {-1, func(h *history) { h.save(nil, long(1), false) }},
		"a snapshot":                    {-1, func(h *history) { h.snapshotOf(members(100)...) }},
		"entries of a process":          {wal.Always, func(h *history) { h.save(state(1, 1, 0), long(1), false) }},
		"entries after a full segment":  {wal.Always, func(h *history) { h.save(nil, long(2), false) }},
		"a second process in mode none": {wal.None, func(h *history) { h.save(nil, long(1), false); h.save(nil, long(3), false) }},
	} {
		for _, mode := range []wal.Sync{wal.Interval, wal.None} {
			t.Run(fmt.Sprint(name, ", ", mode), func(t *testing.T) {
				images := 0
				first, end := seeds(8)
				if race.Enabled {
					end = first + 1
				}
				for seed := first; seed < end; seed++ {
					h := newHistory(t, seed, max(c.first, 0))
					h.sync = mode
					if c.first >= 0 {
						h.save(state(1, 1, 0), nil, true)
						if name == "entries after a full segment" { // it is full when the log is closed
							full := segmentBytes - used(h.lastSegment().current()) - int(seed)*8
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
					h.readFiles()
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
							if !slices.ContainsFunc(h.possible(), func(p model) bool { return same(p.stored(), s) }) {
								t.Errorf("seed %d: Open must return one of %d possible contents; the first of them has this\n%s", seed, len(h.possible()), diff(h.past[h.syncedAt].stored(), s))
							}
							saveAndReopen(t, l, s, dir)
						}
					}
					c.save(h)
					must(t, h.log.Close())
				}
				if images < 5 {
					t.Errorf("the test must try at least 5 images, got %d", images)
				}
			})
		}
	}
}

// members returns n ids, for a snapshot whose record fills several sectors.
func members(n uint64) (ids []uint64) {
	for i := range n {
		ids = append(ids, math.MaxUint64-i)
	}
	return ids
}

// interrupted changes the image as a power failure may leave it while Open removes the
// incomplete end: some of the segments are removed, or all of them, and then some of the
// sectors are zeros.
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

// saveAndReopen saves an entry to an open log and opens the log again, to check that removed
// records do not come back.
func saveAndReopen(t *testing.T, l wal.Log, s wal.Stored, dir string) {
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

// TestDamageAfterSync damages a synced log with zeroed sectors and pages, flipped bits and
// truncated files. Open must refuse the log, or return a content that a power failure may leave.
// Such a content includes everything that was synced when the last undamaged save began.
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
				img[f.name] = bytes.Clone(f.current())
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
				t.Errorf("%v: Open must refuse the log", what)
			}
			if least := h.lastProven(img); !slices.ContainsFunc(h.past[least:], func(p model) bool { return same(p.stored(), s) }) {
				t.Errorf("%v: Open must return one of %d possible contents; the first of them has this\n%s", what, len(h.past)-least, diff(h.past[least].stored(), s))
			}
			must(t, l.Close())
		}
		must(t, h.log.Close())
	})
	t.Logf("%d refused, %d opened", refused, opened)
}

// lastProven returns the index of the last model whose sync is proven by the mark of an undamaged
// call.
func (h *history) lastProven(img image) (least int) {
	for _, p := range h.writes {
		if b := img[p.name]; len(b) >= p.end && bytes.Equal(b[p.begin:p.end], p.content) {
			least = max(least, p.model)
		}
	}
	return least
}

// damageDone describes the damage of a segment.
type damageDone struct {
	string
	short bool // the segment is shorter than when it was created
}

func (h *history) damage(img image) damageDone {
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
		return damageDone{string: fmt.Sprintf("bit %d of byte %d of %s", bit%8, bit/8, name)}
	case 1:
		size := h.rng.IntN(len(b))
		img[name] = b[:size]
		return damageDone{fmt.Sprintf("%s has %d of %d bytes", name, size, len(b)), size < segmentBytes}
	}
	unit := []int{sector, 4096}[h.rng.IntN(2)]
	var zeroed []int
	for range 1 + h.rng.IntN(3) {
		at := h.rng.IntN(n) / unit * unit
		clear(b[at:min(at+unit, len(b))])
		zeroed = append(zeroed, at)
	}
	return damageDone{string: fmt.Sprintf("%s has zeros at %v, %d bytes each", name, zeroed, unit)}
}
