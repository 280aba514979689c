package freelist

// Stats describes the memory and the calls of an allocator. Of the bytes held, InUse were
// requested, Free are in free blocks, and Rounding is the rest of the last 64 bytes of
// each block.
type Stats struct {
	Held     int // bytes from Go: arenas and large blocks
	InUse    int // bytes
	Free     int // bytes
	Rounding int // bytes

	Arenas      int
	EmptyArenas int // of Arenas: kept for new blocks
	Blocks      int // in use, including large ones
	LargeBlocks int // of Blocks: directly from Go
	FreeBlocks  int
	LargestFree int // bytes of the largest free block

	Allocations uint64 // calls that returned a block of at least one byte
	Frees       uint64 // calls that freed a block
	Refused     uint64 // calls of Allocate that returned nil
	Failed      uint64 // calls of Free that returned an error
}

// Fragmentation is the share of the free memory that is not in its largest block. It is 0
// if nothing is free. Because a block is at most one arena, it is not 0 with several
// arenas, even if all of them are empty.
func (s Stats) Fragmentation() float64 {
	if s.Free == 0 {
		return 0
	}
	return 1 - float64(s.LargestFree)/float64(s.Free)
}

// Stats returns the figures. It reads one heap after another, so they are only consistent
// if no other call runs at the same time.
func (a *Allocator) Stats() Stats {
	s := Stats{Refused: a.refused.Load(), Failed: a.failed.Load()}
	for _, h := range a.heaps {
		h.mu.Lock()
		s.addHeap(h)
		h.mu.Unlock()
	}
	a.large.mu.Lock()
	s.add(a.large.tally)
	s.Held += a.large.inUse
	s.LargeBlocks = a.large.tally.blocks
	a.large.mu.Unlock()
	s.Rounding = s.Held - s.InUse - s.Free
	return s
}

func (s *Stats) addHeap(h *heap) {
	s.add(h.tally)
	s.Held += h.count() * h.allocator.arena
	s.Free += h.free * grain
	s.Arenas += h.count()
	s.EmptyArenas += h.empty
	s.FreeBlocks += h.freeBlocks
	if c := h.last(); c >= 0 {
		for r := h.first[c]; ; {
			s.LargestFree = max(s.LargestFree, int(h.at(r).grains)*grain)
			if r = h.at(r).next; r == none {
				break
			}
		}
	}
}

func (s *Stats) add(t tally) {
	s.Allocations += t.allocations
	s.Frees += t.frees
	s.Blocks += t.blocks
	s.InUse += t.inUse
}
