package freelist

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/topogen/topogen/internal/test/speed"
)

// model is an allocator and the blocks that it allocated, each filled with different
// bytes.
type model struct {
	*Allocator
	live  []*owned
	freed [][]byte
	fills byte
	want  Stats // computed from the calls
}

type owned struct {
	block []byte
	fill  byte
}

func (m *model) allocate(t failer, n int) {
	before := m.Stats()
	b := m.Allocate(n)
	if b == nil {
		m.want.Refused++
		if int64(before.Held+max(n, m.arena)) <= m.limit || m.limit == 0 {
			t.Fatalf("Allocate(%d) returned nil with %d of %d held", n, before.Held, m.limit)
		}
		return
	}
	if len(b) != n || cap(b) != n || 0 < n && n <= m.arena && address(b)%grain != 0 {
		t.Fatalf("Allocate(%d): %d bytes, capacity %d, at %#x", n, len(b), cap(b), address(b))
	}
	if n == 0 {
		return
	}
	if !m.dirty && slices.Max(b) != 0 {
		t.Fatalf("Allocate(%d) is not zero", n)
	}
	m.want.Allocations++
	m.fills++
	o := &owned{b, m.fills}
	for i := range b {
		b[i] = o.fill
	}
	m.live = append(m.live, o)
}

// free frees a block through a part of it with the same capacity.
func (m *model) free(t failer, at, keep int) {
	o := m.live[at]
	o.check(t)
	if err := m.Free(o.block[:keep%(len(o.block)+1)]); err != nil {
		t.Fatalf("Free of %d bytes: %v", len(o.block), err)
	}
	m.want.Frees++
	m.live = slices.Delete(m.live, at, at+1)
	m.freed = append(m.freed, o.block)
}

// misuse frees a slice that must not be freed.
func (m *model) misuse(t failer, b []byte) {
	m.want.Failed++
	if err := m.Free(b); !errors.Is(err, ErrForeign) && !errors.Is(err, ErrFreed) {
		t.Fatalf("Free of an invalid slice: %v", err)
	}
}

// again frees a block a second time, unless its memory is part of a live block.
func (m *model) again(t failer, at int) {
	b := m.freed[at]
	for _, o := range m.live {
		if address(o.block) == address(b) && len(o.block) == len(b) {
			return
		}
	}
	m.misuse(t, b)
}

// inside frees a part of a live block.
func (m *model) inside(t failer, at, from, to int) {
	b := m.live[at].block
	from %= len(b) + 1
	to = from + to%(len(b)-from+1)
	if from == 0 && to == len(b) {
		return
	}
	m.misuse(t, b[from:to:to])
}

func (o *owned) check(t failer) {
	if bytes.Count(o.block, []byte{o.fill}) != len(o.block) {
		t.Fatalf("a block of %d bytes was overwritten", len(o.block))
	}
}

// check checks the invariants after each step.
func (m *model) check(t failer) {
	verify(t, m.Allocator)
	m.want.InUse, m.want.Blocks = 0, len(m.live)
	for _, o := range m.live {
		o.check(t)
		m.want.InUse += len(o.block)
	}
	sorted := slices.SortedFunc(slices.Values(m.live), func(x, y *owned) int { return int(address(x.block)) - int(address(y.block)) })
	for i := 1; i < len(sorted); i++ {
		if address(sorted[i-1].block)+uintptr(len(sorted[i-1].block)) > address(sorted[i].block) {
			t.Fatalf("two blocks overlap")
		}
	}
	s := m.Stats()
	got := Stats{InUse: s.InUse, Blocks: s.Blocks, Allocations: s.Allocations, Frees: s.Frees, Refused: s.Refused, Failed: s.Failed}
	if got != m.want {
		t.Fatalf("Stats: got %+v, want %+v", got, m.want)
	}
	if s.Held != s.InUse+s.Free+s.Rounding || s.Rounding < 0 || s.Rounding >= grain*max(s.Blocks, 1) || s.LargestFree > s.Free ||
		s.Fragmentation() < 0 || s.Fragmentation() >= 1 {
		t.Fatalf("Stats do not add up: %+v", s)
	}
	if kept := len(m.heaps) + (s.Arenas-s.EmptyArenas)/arenasPerEmpty; s.EmptyArenas > kept {
		t.Fatalf("%d of %d arenas are empty", s.EmptyArenas, s.Arenas)
	}
}

// end frees all blocks, which must merge to complete arenas.
func (m *model) end(t failer) {
	for len(m.live) > 0 {
		m.free(t, len(m.live)/2, 0)
	}
	m.check(t)
	s := m.Stats()
	if s.Arenas != s.FreeBlocks || s.Arenas != s.EmptyArenas || s.Free != s.Held || s.InUse != 0 || s.Arenas > len(m.heaps) {
		t.Fatalf("after all was freed: %+v", s)
	}
}

func TestModel(t *testing.T) {
	speed.Checks(t, 40, 100, 1000)
	rapid.Check(t, func(t *rapid.T) {
		options := []Option{
			ArenaSize(rapid.SampledFrom([]int{0, arenaMin, 5000, 16 << 10}).Draw(t, "arena")),
			Heaps(rapid.IntRange(1, 3).Draw(t, "heaps")),
			Limit(rapid.SampledFrom([]int{0, 0, 40_000, 10_000, 100}).Draw(t, "limit")),
		}
		if rapid.Bool().Draw(t, "dirty") {
			options = append(options, Dirty())
		}
		m := &model{Allocator: New(options...)}
		pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "at") }
		size := rapid.OneOf(rapid.IntRange(0, 300), rapid.IntRange(0, 5000), rapid.IntRange(4000, 20_000), rapid.SampledFrom([]int{64, 640, 4096, 16 << 10}))
		t.Repeat(map[string]func(*rapid.T){
			"allocate": func(t *rapid.T) {
				for range rapid.IntRange(1, 8).Draw(t, "times") {
					m.allocate(t, size.Draw(t, "size"))
				}
			},
			"free": func(t *rapid.T) {
				for range min(len(m.live), rapid.IntRange(1, 8).Draw(t, "times")) {
					m.free(t, pick(len(m.live)), rapid.IntRange(0, 5000).Draw(t, "keep"))
				}
			},
			"again": func(t *rapid.T) {
				if len(m.freed) > 0 {
					m.again(t, pick(len(m.freed)))
				}
			},
			"inside": func(t *rapid.T) {
				if len(m.live) > 0 {
					m.inside(t, pick(len(m.live)), rapid.IntRange(0, 300).Draw(t, "from"), rapid.IntRange(0, 5000).Draw(t, "to"))
				}
			},
			"foreign": func(t *rapid.T) { m.misuse(t, make([]byte, rapid.IntRange(1, 5000).Draw(t, "size"))) },
			"":        func(t *rapid.T) { m.check(t) },
		})
		m.end(t)
	})
}

// FuzzOperations interprets a string as operations: one byte for the operation, two bytes
// for its argument.
func FuzzOperations(f *testing.F) {
	f.Add([]byte("a\x10\x00a\x20\x00f\x00\x00a\xff\x0fa\x00\x20fffaaagfff"))
	f.Add([]byte("a\x40\x00a\x40\x00a\x40\x00f\x01\x00f\x00\x00f\x00\x00d\x00\x00d\x01\x00i\x00\x01"))
	f.Fuzz(func(t *testing.T, operations []byte) {
		m := &model{Allocator: New(ArenaSize(arenaMin), Heaps(1), Limit(200_000))}
		for ; len(operations) >= 3 && m.want.Allocations+m.want.Frees+m.want.Failed < 300; operations = operations[3:] {
			x := int(operations[1]) | int(operations[2])<<8
			switch op := operations[0] % 8; {
			case op < 4:
				m.allocate(t, x>>(4*op)) // sizes of all magnitudes
			case op < 6 && len(m.live) > 0:
				m.free(t, x%len(m.live), x)
			case op == 6 && len(m.freed) > 0:
				m.again(t, x%len(m.freed))
			case op == 7 && len(m.live) > 0:
				m.inside(t, x%len(m.live), x>>2, x>>4)
			}
			m.check(t)
		}
		m.end(t)
	})
}
