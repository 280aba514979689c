package freelist

// failer is the common interface of testing.T and rapid.T.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// verify checks all data about blocks. No other call may run at the same time.
func verify(t failer, a *Allocator) {
	t.Helper()
	arenas, held := 0, a.large.inUse
	for _, h := range a.heaps {
		verifyHeap(t, h)
		arenas += h.count()
	}
	held += arenas * a.arena
	if int(a.held.Load()) != held || a.limit > 0 && int64(held) > a.limit {
		t.Fatalf("%d bytes are held, %d are counted, the limit is %d", held, a.held.Load(), a.limit)
	}
	indexed := a.index.sorted.Load()
	if indexed == nil && arenas == 0 {
		return
	}
	if len(*indexed) != arenas {
		t.Fatalf("%d arenas, but %d in the index", arenas, len(*indexed))
	}
	for i, e := range *indexed {
		if e.arena.returned || e.base != address(e.arena.memory) || i > 0 && e.base < (*indexed)[i-1].end {
			t.Fatalf("entry %d of the index is wrong", i)
		}
	}
}

// verifyHeap checks that blocks cover their arenas, that no two neighbours are free, that
// lists and bitmaps contain exactly the free blocks, and that the counts are right.
func verifyHeap(t failer, h *heap) {
	t.Helper()
	free := make(map[ref]uint32)
	grains, empty, used, inUse := 0, 0, 0, 0
	for _, a := range h.arenas {
		if a == nil {
			continue
		}
		wasFree, known := false, 0
		for i := uint32(0); int(i) < len(a.tags); known++ {
			id := a.tags[i]
			b := &a.blocks[id]
			if b.first != i || b.grains == 0 || a.tags[i+b.grains-1] != id {
				t.Fatalf("arena %d, grain %d: %+v", a.number, i, *b)
			}
			if isFree := b.size == 0; isFree {
				if wasFree {
					t.Fatalf("arena %d, grain %d: two free neighbours", a.number, i)
				}
				free[refTo(a, id)] = b.grains
				grains += int(b.grains)
				wasFree = true
			} else {
				if int(b.size) > int(b.grains)*grain || int(b.size) <= int(b.grains-1)*grain {
					t.Fatalf("arena %d, grain %d: %d bytes in %d grains", a.number, i, b.size, b.grains)
				}
				used++
				inUse += int(b.size)
				wasFree = false
			}
			i += b.grains
			if int(b.grains) == len(a.tags) && wasFree {
				empty++
			}
		}
		for id := a.unused; id >= 0; known++ {
			next := a.blocks[id].next
			if id = int(next); next == none {
				id = -1
			}
		}
		if known != len(a.blocks) {
			t.Fatalf("arena %d: %d blocks, %d numbers", a.number, known, len(a.blocks))
		}
	}
	if grains != h.free || len(free) != h.freeBlocks || empty != h.empty || used != h.blocks || inUse != h.inUse {
		t.Fatalf("%d grains free in %d blocks, %d arenas empty, %d blocks with %d bytes in use; counted %d, %d, %d, %d, %d",
			grains, len(free), empty, used, inUse, h.free, h.freeBlocks, h.empty, h.blocks, h.inUse)
	}
	for c, r := range h.first {
		if has := h.steps[c/steps]>>(c%steps)&1 != 0; has != (r != none) || has && h.levels>>(c/steps)&1 == 0 {
			t.Fatalf("class %d: the bitmap is wrong", c)
		}
		for prev := none; r != none; prev, r = r, h.at(r).next {
			if class(free[r]) != c || free[r] == 0 || h.at(r).prev != prev {
				t.Fatalf("class %d has a block of %d grains", c, free[r])
			}
			delete(free, r)
		}
	}
	if len(free) > 0 {
		t.Fatalf("%d free blocks are in no list", len(free))
	}
	for level, in := range h.steps {
		if (in != 0) != (h.levels>>level&1 != 0) {
			t.Fatalf("level %d: the bitmap is wrong", level)
		}
	}
}
