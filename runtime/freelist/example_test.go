package freelist_test

import (
	"errors"
	"fmt"

	"github.com/topogen/topogen/runtime/freelist"
)

func Example() {
	frames := freelist.New(freelist.Limit(64 << 20))
	frame := frames.Allocate(1500)
	n := copy(frame, "a message")
	fmt.Printf("%s, %d bytes of %d\n", frame[:n], n, cap(frame))
	fmt.Println(frames.Free(frame))
	fmt.Println(errors.Is(frames.Free(frame), freelist.ErrFreed))
	// Output:
	// a message, 9 bytes of 1500
	// <nil>
	// true
}

func ExampleStats() {
	var blocks [3][]byte
	a := freelist.New(freelist.ArenaSize(64<<10), freelist.Heaps(1))
	for i := range blocks {
		blocks[i] = a.Allocate(10_000)
	}
	_ = a.Free(blocks[0]) // two blocks in use separate it from the rest of the arena
	s := a.Stats()
	fmt.Println(s.InUse, "bytes in use,", s.Rounding, "to round up,", s.Free, "free in", s.FreeBlocks, "blocks")
	fmt.Printf("fragmentation %.2f\n", s.Fragmentation())
	// Output:
	// 20000 bytes in use, 96 to round up, 45440 free in 2 blocks
	// fragmentation 0.22
}
