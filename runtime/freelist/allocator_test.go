package freelist

import (
	"errors"
	"math"
	"testing"
	"unsafe"

	"github.com/topogen/topogen/internal/test/speed"
)

// TestClasses: each size is in a class with matching bounds, classes ascend, and next and
// last agree with a search of all classes.
func TestClasses(t *testing.T) {
	before, smallest := 0, uint32(1)
	for grains := uint32(1); grains <= grainsMax; grains++ {
		c := class(grains)
		if c != before {
			if c != before+1 {
				t.Fatalf("%d grains are in class %d, which follows %d", grains, c, before)
			}
			before, smallest = c, grains
		}
		if grains-smallest >= max(smallest/steps, 1) {
			t.Fatalf("%d and %d grains are both in class %d", smallest, grains, c)
		}
	}
	if last := class(grainsMax); last >= levels*steps {
		t.Fatalf("the last class is %d of %d", last, levels*steps)
	}
	var l lists
	if l.next(0) != -1 || l.last() != -1 {
		t.Fatal("an empty list has a class with blocks")
	}
	for _, c := range []int{1, 15, 16, 100, levels*steps - 1} {
		l.fill(c)
		for from := 0; from <= c; from++ {
			if l.next(from) != c || l.last() != c {
				t.Fatalf("from %d: %d, the last is %d, want %d", from, l.next(from), l.last(), c)
			}
		}
		if l.next(c+1) != -1 {
			t.Fatalf("class %d is above %d", l.next(c+1), c)
		}
		l.drain(c)
	}
}

func TestFreeRefuses(t *testing.T) {
	a, other := New(Heaps(1)), New()
	first, b, last := a.Allocate(640), a.Allocate(640), a.Allocate(640)
	large := a.Allocate(2 << 20)
	for _, bad := range []struct {
		name  string
		block []byte
	}{
		{"of Go", make([]byte, 640)},
		{"of another allocator", other.Allocate(640)},
		{"large, of another allocator", other.Allocate(2 << 20)},
		{"without its first byte", b[1:]},
		{"one byte further", unsafe.Slice(&b[1], len(b))},
		{"without its first 64 bytes", b[64:]},
		{"without anything", b[len(b):]},
		{"with less capacity", b[:600:600]},
		{"with no capacity", b[:0:0]},
		{"moved by append", append(b, 1)},
		{"large, without its first byte", large[1:]},
		{"large, with less capacity", large[: 1<<20 : 1<<20]},
		{"large, of length 0", large[len(large):]},
	} {
		if err := a.Free(bad.block); !errors.Is(err, ErrForeign) {
			t.Errorf("%s: %v", bad.name, err)
		}
	}
	verify(t, a)
	free := func(b []byte, want error) {
		t.Helper()
		if err := a.Free(b); !errors.Is(err, want) {
			t.Fatalf("Free: got %v, want %v", err, want)
		}
		verify(t, a)
	}
	free(b[:0], nil)
	free(b, ErrFreed)
	free(first, nil) // b is now part of a larger block
	free(b, ErrFreed)
	free(first, ErrFreed)
	free(b[64:], ErrFreed)
	block := a.Allocate(1280)
	free(b, ErrForeign) // its memory has another owner
	free(block, nil)
	free(last, nil)
	free(last, ErrFreed) // in an empty arena
	free(large, nil)
	free(large, ErrForeign)
	if s := a.Stats(); s.Failed != 13+7 || s.InUse != 0 || s.Blocks != 0 {
		t.Errorf("%+v", s)
	}
}

func TestArenasGoBack(t *testing.T) {
	a := New(Heaps(1), ArenaSize(arenaMin), Limit(16*arenaMin))
	var blocks [][]byte
	for b := a.Allocate(arenaMin); b != nil; b = a.Allocate(arenaMin) {
		blocks = append(blocks, b)
	}
	if len(blocks) != 16 || a.Allocate(1) != nil || a.Stats().Refused != 2 {
		t.Fatalf("got %d blocks, %+v", len(blocks), a.Stats())
	}
	for i, b := range blocks {
		if err := a.Free(b); err != nil {
			t.Fatal(err)
		}
		used := len(blocks) - 1 - i
		if s := a.Stats(); s.EmptyArenas > 1+used/arenasPerEmpty || s.Arenas != used+s.EmptyArenas {
			t.Fatalf("%d blocks: %+v", used, s)
		}
	}
	if s := a.Stats(); s.Arenas != 1 {
		t.Fatalf("%+v", s)
	}
	if err := a.Free(blocks[0]); !errors.Is(err, ErrForeign) && !errors.Is(err, ErrFreed) {
		t.Fatal(err)
	}
	large := a.Allocate(16 * arenaMin) // needs the empty arenas
	if s := a.Stats(); large == nil || s.Arenas != 0 || s.Held != 16*arenaMin {
		t.Fatalf("%+v", s)
	}
	if a.Allocate(1) != nil || a.Allocate(arenaMin+1) != nil || a.Allocate(math.MaxInt) != nil {
		t.Fatal("the limit was exceeded")
	}
	verify(t, a)
}

// TestKeptArenaIsUsedAgain: repeated allocations of one block do not request memory from
// Go each time.
func TestKeptArenaIsUsedAgain(t *testing.T) {
	speed.NoRace(t)
	a := New(Heaps(1), Dirty())
	b := a.Allocate(100)
	b[0] = 1
	if err := a.Free(b); err != nil {
		t.Fatal(err)
	}
	allocations := testing.AllocsPerRun(100, func() {
		b := a.Allocate(100)
		if b[0] != 1 { // a Dirty allocator does not clear blocks
			t.Error("another arena")
		}
		if err := a.Free(b); err != nil {
			t.Error(err)
		}
	})
	if allocations != 0 {
		t.Errorf("%v allocations", allocations)
	}
}

// TestLimitIsOfAllHeaps: if one heap cannot grow, other heaps provide the block.
func TestLimitIsOfAllHeaps(t *testing.T) {
	a := New(Heaps(2), ArenaSize(arenaMin), Limit(arenaMin))
	if b, _ := a.heaps[0].allocate(64, true); b == nil {
		t.Fatal("the first allocation failed")
	}
	for range arenaMin/64 - 1 {
		if a.Allocate(64) == nil {
			t.Fatal("the other heap has room, but Allocate returned nil")
		}
	}
	if a.Allocate(64) != nil || a.Stats().Free != 0 {
		t.Error("more than the limit was allocated")
	}
	verify(t, a)
}

func TestArenasHaveNumbers(t *testing.T) {
	a := New(Heaps(1), ArenaSize(arenaMin))
	a.arenasMax = 3
	for range 3 {
		a.Allocate(arenaMin)
	}
	if a.Allocate(1) != nil || a.Allocate(arenaMin+1) == nil {
		t.Error("a fourth arena was added, or a large block was refused")
	}
	verify(t, a)
}

func TestOddSizes(t *testing.T) {
	a := New()
	if b := a.Allocate(0); b == nil || cap(b) != 0 || a.Free(b) != nil || a.Free(b) != nil || a.Free(nil) != nil {
		t.Error("Allocate(0) must return an empty slice that is not nil")
	}
	sizes := []int{-1, math.MinInt}
	if math.MaxInt > math.MaxInt32 { // a process of 32 bits may have this much memory
		sizes = append(sizes, math.MaxInt)
	}
	for _, n := range sizes {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("Allocate(%d) does not panic", n)
				}
			}()
			a.Allocate(n)
		}()
	}
	if s := a.Stats(); s != (Stats{}) || a.held.Load() != 0 {
		t.Errorf("%+v", s)
	}
	for set, want := range map[int]int{math.MinInt: arenaMin, 0: arenaMin, arenaMin + 1: 2 * arenaMin, math.MaxInt: arenaMax} {
		if got := New(ArenaSize(set)).arena; got != want {
			t.Errorf("ArenaSize(%d) gives %d", set, got)
		}
	}
	if a := New(Limit(100_000)); a.arena != 1<<16 || a.Allocate(1) == nil {
		t.Errorf("an arena has %d bytes", a.arena)
	}
	if a := New(Limit(100)); a.Allocate(1) != nil {
		t.Error("Allocate must return nil, because a page is larger than the limit")
	}
}

// TestANilOptionChangesNothing: a nil option is ignored, as in the pool.
func TestANilOptionChangesNothing(t *testing.T) {
	if b := New(nil, Heaps(1), nil).Allocate(100); len(b) != 100 {
		t.Errorf("a block of %d bytes", len(b))
	}
}
