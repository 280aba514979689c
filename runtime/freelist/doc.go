// Package freelist allocates blocks of bytes from large pieces of memory, and frees
// them.
//
// It is a stand-alone part: topogen itself does not use it.
//
//	frames := freelist.New(freelist.Limit(64 << 20))
//	frame := frames.Allocate(1500) // nil if 64 MiB are in use
//	…
//	err := frames.Free(frame)
//
// # When to use it
//
// Most programs only need Go's allocator and garbage collector. This allocator adds
// a hard [Limit], memory that can be reused at once instead of after the next
// collection, exact [Stats], and errors for wrong calls of Free. It holds 1.05 to 1.5
// times the memory that was in use at most, whereas Go with GOGC=100 lets garbage grow to
// the size of the live memory.
//
// BenchmarkBlocks and BenchmarkCollector measure its speed. The results on two cores, with
// other load:
//
//   - Blocks of 1 to 64 KiB that are freed at once: 2 to 24 times as fast as make,
//     and faster for larger blocks. With a thousand live blocks, 1.4 to 1.6 times as
//     fast. With blocks given to another goroutine 64 at a time, twice as fast at 1 KiB,
//     and not faster from 16 KiB on.
//   - Blocks of 64 bytes: make takes a quarter to two thirds of the time.
//   - 300 MB of blocks that are replaced in random order: make is three to four times as
//     fast for blocks of some hundred bytes, and 1.3 to 2.5 times for larger ones, because
//     each Free waits for memory that is not in a cache. But a collection takes only a tenth
//     to a third of the time, because it finds hundreds of arenas instead of a million
//     blocks.
//   - [sync.Pool] is the fastest if there are few sizes and blocks are not cleared. It
//     takes a third to nine tenths of the time of freelist for small blocks, and a
//     tenth if clearing is most of the work. It has no limit and detects no errors.
//
// The runtime does not use this package, because its queues hold messages, which contain
// pointers, in memory that they reuse, and because records of errtop are strings of which
// the collector frees a few at a time. The package is useful for blocks of some KiB that
// are allocated and freed often, such as frames of a transport or pages of a durable queue.
//
// # Guarantees
//
// Live blocks do not overlap, are cleared unless the allocator is [Dirty], and have no
// capacity beyond their length. Blocks in arenas begin at multiples of 64 bytes and occupy
// multiples of 64 bytes, so two blocks never share a cache line.
//
// Allocate and Free take constant time, except for three things: clearing, finding the arena
// of an address, which is a binary search, and getting an arena from Go or returning it,
// which copies the list of arenas. They do not allocate, except for the table of an arena's
// blocks, which grows to its maximum and stays. A Free that fails may examine all blocks
// of the arena to find the reason.
//
// Free either frees a block, or returns an error and changes nothing. The data about blocks
// is stored apart from the arenas, not between the blocks. A write beyond a block, which the
// capacity prevents, or into a freed block cannot damage it. A write into a freed block
// damages the data of the block's new owner, as in C; with -race, Free writes to the block,
// so that the race detector reports such a write. An arena that was returned to the collector
// stays in memory while a slice refers to it.
//
// Empty arenas are returned, except one in each heap and one for every four that are not
// empty. A load that varies by less gets no new memory from Go.
//
// # Limits
//
// Blocks do not move, so a single block keeps its whole arena. If a few scattered blocks
// remain after a peak, most of the memory of the peak stays and can only be used for new
// blocks. Blocks that are larger than an eighth of an arena leave gaps of their size, so
// the memory held can be almost twice the memory in use.
//
// Blocks hold bytes. The collector does not see pointers that are stored in them.
//
// If a block was freed and allocated again with the same size, a second Free of the old
// slice frees the new owner's block, because the two slices are equal.
//
// # Design
//
// Free blocks are in lists by size. With one list for each power of two, a block of the
// list for the requested size may be too small. If only the next higher list is used, where
// every block fits, a block that was freed is not found by the next request of its size, and
// half of the memory may be unused. Here each power of two has sixteen lists, as in the
// allocator TLSF (Masmano and others, 2004). Any block of a higher list fits, and a block of
// the next list is at most a sixteenth too large. Before that, four blocks of the request's
// own list are tried, so that requests of equal sizes find each other's blocks.
//
// The design was chosen by measuring the bytes held per byte in use. For requests of equal
// sizes it needs 1.05, and without trying the request's own list 1.57. For uniformly
// distributed sizes it needs 1.09. One list for each power of two needs 1.24, and 1.50
// without trying the request's own list.
//
// Each processor of Go's scheduler mostly has its own heap, through a sync.Pool, and uses
// the next heap if its own is locked. A block is returned to its heap under the lock of that
// heap, whichever goroutine frees it. On two cores, two goroutines did up to 1.7 times as
// much with two heaps as with one lock, and giving blocks to another goroutine took the same
// time with either. There is therefore no list of blocks to be returned later, which would
// cost an atomic operation per block.
package freelist
