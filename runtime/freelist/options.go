package freelist

import "math/bits"

const (
	arenaMin     = 4 << 10           // bytes: a page
	arenaDefault = 1 << 20           // large enough that requests to Go are rare, small enough to stay empty
	arenaMax     = grainsMax * grain // 4 MiB

	heapsDefault = 16  // maximum by default: each heap may keep an empty arena
	heapsMax     = 256 // far more than any computer can use; catches a mistyped number
)

// Option is a property of an allocator.
type Option func(*Allocator)

// ArenaSize sets how many bytes are requested from Go at a time. The default is 1 MiB.
// The size is rounded up to a power of two from 4 KiB to 4 MiB. Larger blocks come
// directly from Go. A good size is some hundred times the usual block.
func ArenaSize(bytes int) Option {
	return func(a *Allocator) {
		bytes = min(max(bytes, arenaMin), arenaMax)
		a.arena = 1 << bits.Len(uint(bytes-1))
	}
}

// Limit sets how many bytes all arenas and larger blocks together may have; 0, the
// default, means no limit. Allocate returns nil if it would need more. If the limit is
// less than the size of an arena, arenas are smaller, but at least 4 KiB. The data about
// blocks is not counted: some 3 %, and 24 bytes per block.
func Limit(bytes int) Option {
	return func(a *Allocator) { a.limit = int64(max(bytes, 0)) }
}

// Heaps sets how many goroutines can use the allocator at the same time without waiting,
// from 1 to 256. The default is GOMAXPROCS, but at most 16. Each heap has its own arenas,
// so one heap needs the least memory.
func Heaps(n int) Option {
	return func(a *Allocator) { a.heaps = make([]*heap, min(max(n, 1), heapsMax)) }
}

// Dirty makes Allocate return blocks without clearing them, which is most of the work for
// blocks of some KiB. Use it if each block is written before it is read, and blocks
// contain no secrets.
func Dirty() Option {
	return func(a *Allocator) { a.dirty = true }
}
