package freelist

import "errors"

// Errors of Free, which changes nothing if it returns an error.
var (
	// ErrFreed says that the block was freed before.
	ErrFreed = errors.New("freelist: the block is free already")

	// ErrForeign says that the slice is not a block that this allocator returned. It
	// comes from elsewhere, begins or ends within a block, was moved by append, or its
	// memory was returned to the collector.
	ErrForeign = errors.New("freelist: not a block of this allocator")
)
