package wal_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/raft/wal"
)

// callsOfHistory is the number of calls of a history. They write several segments and one or
// two snapshots.
const callsOfHistory = 40

// sector is the smallest unit that a disk writes atomically, in bytes.
const sector = 512

// written describes the bytes that one call wrote to the segment that was the last one
// before the call. These bytes include a mark, which says which earlier calls were synced.
type written struct {
	name       string
	begin, end int
	content    []byte // between them
	model      int    // index in history.past of the model that was synced when the call began
}

// recorded is a history that notes what its calls have written.
type recorded struct {
	*history
	writes []written
}

func newRecorded(t *testing.T, seed uint64, mode wal.Sync) *recorded {
	h := &recorded{history: newHistory(t, seed, mode)}
	h.open()
	if mode == wal.Always { // the log syncs its first mark separately, which the test does not model
		h.save(state(1, 1, 0), nil, true)
	}
	run := h.run
	h.run = func(f func() error) bool { return h.record(h.dir, func() bool { return run(f) }) }
	return h
}

// record notes what a call writes to the log in a directory, unless the call is interrupted.
func (h *recorded) record(dir string, call func() bool) bool {
	name, before := lastSegment(h.t, dir)
	p := written{name: name, begin: used(before), model: h.syncedAt}
	if !call() {
		return false
	}
	after, err := os.ReadFile(filepath.Join(dir, name))
	if errors.Is(err, os.ErrNotExist) { // a snapshot has replaced the segment
		return true
	}
	must(h.t, err)
	if p.end = used(after); p.end > p.begin {
		p.content = after[p.begin:p.end]
		h.writes = append(h.writes, p)
	}
	return true
}

// lastSegment returns the segment that a log writes to, and its content.
func lastSegment(t *testing.T, dir string) (name string, content []byte) {
	all := files(t, dir, "wal", "*.wal")
	path := all[len(all)-1]
	content, err := os.ReadFile(path)
	must(t, err)
	return "wal/" + filepath.Base(path), content
}

// act does a random call, or opens the log.
func (h *recorded) act() {
	if h.log == nil {
		h.open()
		return
	}
	h.history.act()
	if h.log == nil {
		h.closed()
	}
}

// closed notes that the last mark was written after a sync of everything else.
func (h *recorded) closed() {
	name, content := lastSegment(h.t, h.dir)
	if n := len(h.writes); n > 0 && h.writes[n-1].name == name && h.writes[n-1].end == used(content) {
		h.writes[n-1].model = h.syncedAt
	}
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

// used returns the offset of the end of the last record of a segment.
func used(content []byte) int {
	at := offsets(content)
	return at[len(at)-1]
}

// TestDamageAfterSync damages a synced log with zeroed sectors and pages, flipped bits and
// truncated files. Open must refuse the log, or return a content that a power failure may leave.
// Such a content includes everything that was synced when the last undamaged save began.
func TestDamageAfterSync(t *testing.T) {
	speed.NoRace(t)
	dir := filepath.Join(memdir.New(t), "log")
	var opened, refused int
	histories(t, 2, 12, 2000, func(t *testing.T, seed uint64, mode wal.Sync) {
		h := newRecorded(t, seed, mode)
		for range callsOfHistory {
			h.act()
		}
		switch {
		case h.log == nil:
		case h.rng.IntN(2) == 0:
			h.close()
			h.closed()
		default:
			h.call(true, h.log.Sync)
			l := h.log
			t.Cleanup(func() { _ = l.Close() })
		}
		saved := copied(t, h.dir)
		for range speed.Pick(t, 20, 40, 40) {
			img := make(image)
			for name, b := range saved {
				img[name] = bytes.Clone(b)
			}
			what := h.damage(img)
			img.write(t, dir)
			l, s, err := wal.Open(dir, own, h.options())
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
	})
	t.Logf("%d refused, %d opened", refused, opened)
}

// lastProven returns the index of the last model whose sync is proven by the mark of an undamaged
// call.
func (h *recorded) lastProven(img image) (least int) {
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

func (h *recorded) damage(img image) damageDone {
	var names []string
	for name := range img {
		if filepath.Ext(name) == ".wal" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
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
