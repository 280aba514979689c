package freelist

import "math/bits"

const (
	arenaMin     = 4 << 10           // bytes: a page
	arenaDefault = 1 << 20           // bytes: asked of Go seldom, and little where it stays empty
	arenaMax     = grainsMax * grain // 4 MiB

	heapsDefault = 16  // at most: each may keep an empty arena
	heapsMost    = 256 // far beyond any machine that has use for more; catches a mistyped number
)

// Option is a property of an allocator.
type Option func(*Allocator)

// ArenaSize is how many bytes are asked of Go at a time: 1 MiB unless it is set,
// rounded up to a power of two from 4 KiB to 4 MiB. Larger blocks than that come
// from Go one by one. Make it some hundred times as large as the usual block.
func ArenaSize(bytes int) Option {
	return func(a *Allocator) {
		bytes = min(max(bytes, arenaMin), arenaMax)
		a.arena = 1 << bits.Len(uint(bytes-1))
	}
}

// Limit is how many bytes all arenas and larger blocks together may have; 0, as
// it is unless set, is no limit. Allocate returns nil where it would need more.
// Below the size of an arena, arenas are made as much smaller, but not smaller
// than 4 KiB. What is known about blocks is not counted: some 3 % and 24 bytes a
// block.
func Limit(bytes int) Option {
	return func(a *Allocator) { a.limit = int64(max(bytes, 0)) }
}

// Heaps is how many goroutines may be in the allocator at the same time, 1 to
// 256. Each heap has arenas of its own; one heap needs the least memory. Unless it
// is set, it is GOMAXPROCS, though no more than 16.
func Heaps(n int) Option {
	return func(a *Allocator) { a.heaps = make([]*heap, min(max(n, 1), heapsMost)) }
}

// Dirty makes Allocate return blocks with what was written to them before. It
// saves the clearing, which for blocks of some KiB is most of the work. Use it
// where each block is filled before it is read, and nothing in it is secret.
func Dirty() Option {
	return func(a *Allocator) { a.dirty = true }
}
