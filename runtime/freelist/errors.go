package freelist

import "errors"

// What Free returns. It has changed nothing then.
var (
	// ErrFreed says that the block is free already: it was freed before.
	ErrFreed = errors.New("freelist: the block is free already")

	// ErrForeign says that the slice is not a block of this allocator as Allocate
	// has returned it. It comes from elsewhere, begins or ends within a block, was
	// moved by append, or its memory has gone back to the collector since.
	ErrForeign = errors.New("freelist: not a block that this allocator has handed out")
)
