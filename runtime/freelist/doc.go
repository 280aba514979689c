// Package freelist hands out blocks of bytes from large pieces of memory, and
// takes them back.
//
//	frames := freelist.New(freelist.Limit(64 << 20))
//	frame := frames.Allocate(1500) // nil where 64 MiB are held
//	…
//	err := frames.Free(frame)
//
// # Where it is of use, and where it is not
//
// Go has a good allocator and a collector; most programs need no other one. What
// this one has that they lack is a [Limit] that holds, memory that is free again
// at once and not at the next collection, exact [Stats], and errors for what is
// freed wrongly. It holds 1.05 to 1.5 times what was in use at most, where Go
// with GOGC=100 lets garbage grow to what is alive.
//
// BenchmarkBlocks and BenchmarkCollector say how fast it is; on two cores that
// were not idle:
//
//   - Blocks of 1 to 64 KiB that are freed at once: 2 to 24 times as fast as make,
//     the more so the larger the block. With a thousand of them alive 1.4 to 1.6
//     times. Handed over to another goroutine by 64: twice at 1 KiB, and no faster
//     from 16 KiB on.
//   - Blocks of 64 bytes: make takes a quarter to two thirds of the time.
//   - 300 MB of blocks that are replaced in random order: make is faster, three to
//     four times for blocks of some hundred bytes and 1.3 to 2.5 for larger ones, as
//     each Free waits for memory that is in no cache. A collection, on the other
//     hand, takes a tenth to a third of the time, as it finds hundreds of arenas
//     instead of a million blocks.
//   - [sync.Pool], where sizes are few and nothing is cleared, is the fastest: a
//     third to nine tenths of the time of freelist for small blocks, a tenth where
//     clearing is most of the work. It bounds nothing and detects nothing.
//
// The runtime itself does not use it yet. Its queues hold messages, which have
// pointers, in memory that they use again; records of errtop are strings that go
// to the collector a few at a time. It will win where blocks of bytes of some KiB
// come and go: frames of a transport, pages of a durable queue.
//
// # Guarantees
//
// Live blocks do not overlap, are cleared unless the allocator is [Dirty], and
// have no capacity beyond their length. Blocks of arenas begin at, and take up
// multiples of, 64 bytes, so that two of them never share a cache line.
//
// Allocate and Free take constant time, apart from clearing, from finding the
// arena of an address, which is a binary search, and from asking Go for an arena
// or giving one back, which copies the list of them. Neither allocates otherwise,
// but for the table of an arena's blocks, which grows to the most it ever had. A
// Free that is refused may look at all blocks of the arena to say why.
//
// Free either takes a block back or returns an error and changes nothing. What is
// known about blocks stands beside the arenas, not between the blocks: neither a
// write beyond a block, which its capacity prevents, nor one to a block that was
// freed reaches it. The latter spoils the contents of whoever has the memory by
// then, as it does in C; with -race Free writes to the block, so that users who
// do not know of each other are reported. An arena that has gone back to the
// collector lives on while somebody holds a slice of it.
//
// Empty arenas go back, but for one in each heap and one for each four that are
// not empty: a load that rises and falls by less asks Go for nothing.
//
// # Limits
//
// Blocks do not move, so a single one keeps its arena. After a peak that leaves a
// few blocks all over the place, most of the memory of the peak stays, usable for
// new blocks only. Blocks that are larger than an eighth of an arena leave gaps
// of their size: what is held comes near twice what is in use.
//
// Blocks hold bytes. Pointers hidden in them are not seen by the collector.
//
// A second Free of a block that was handed out again with the same size frees its
// new owner's: the two slices are equal.
//
// # Design
//
// The allocator is modelled on rast.md 2.1 and 3.1 (docs/reference/rast.md). That
// text takes the first block of the N-th list, N being the logarithm of what
// is asked for, rounded down. That list has blocks from 2^N to 2^(N+1)-1, so its
// first may be too small, and the text's new external blocks, of 2^N, always are
// unless 2^N was asked for. One level higher all blocks fit, but then a block that
// was freed is not found by the next request of its size, and half of the memory
// may lie idle. Here each power of two has sixteen lists, as in the allocator TLSF
// (Masmano and others, 2004): any block of a higher list fits, and is at most a
// sixteenth larger than need be where the next list has one. Four blocks of the
// own list are looked at before, so that equal sizes find each other. Measured as
// bytes held for each in use: 1.05 instead of 1.57 for equal sizes, and 1.09 for
// uniform ones, against 1.24 with one list for each power of two and 1.50 if that
// does not look at its own list.
//
// The text has an allocator for each thread. Here each processor of Go's scheduler
// mostly has a heap to itself, through a sync.Pool, and goes to the next one where
// somebody is in it. A block goes back to the heap that it came from, whoever
// frees it, under that heap's lock. On two cores two goroutines got through up to
// 1.7 times as much with two heaps as with one lock, and handing over to another
// goroutine took as long with either. So there is no list of blocks to be taken
// back later, which would cost an atomic operation for each block.
package freelist
