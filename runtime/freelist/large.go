package freelist

import "sync"

// large holds the blocks that come directly from Go.
type large struct {
	mu     sync.Mutex
	blocks map[uintptr][]byte
	tally
}

// allocateLarge returns a block from Go, or nil if the limit is reached.
func (a *Allocator) allocateLarge(n int) []byte {
	if !a.reserve(n) {
		for _, h := range a.heaps { // return the empty arenas
			h.mu.Lock()
			h.trim(0)
			h.mu.Unlock()
		}
		if !a.reserve(n) {
			a.refused.Add(1)
			return nil
		}
	}
	made := false
	defer func() {
		if !made { // n is larger than Go can allocate
			a.unreserve(n)
		}
	}()
	b := make([]byte, n)
	made = true
	l := &a.large
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.blocks == nil {
		l.blocks = make(map[uintptr][]byte)
	}
	l.blocks[address(b)] = b
	l.allocations++
	l.inUse += n
	l.tally.blocks++
	return b
}

// freeLarge frees a large block.
func (a *Allocator) freeLarge(b []byte) error {
	l := &a.large
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.blocks[address(b)])
	switch {
	case n == 0 && cap(b) == 0: // nil, or from Allocate(0)
		return nil
	case n != cap(b):
		return ErrForeign
	}
	delete(l.blocks, address(b))
	a.unreserve(n)
	l.frees++
	l.inUse -= n
	l.tally.blocks--
	return nil
}
