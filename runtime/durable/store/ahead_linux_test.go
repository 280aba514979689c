package store_test

import (
	"syscall"
	"testing"

	"github.com/topogen/topogen/runtime/durable/store"
)

// TestPagesHaveBlocks: most commits write to blocks that the file has already, so that their
// syncs need not make the allocation of blocks durable.
func TestPagesHaveBlocks(t *testing.T) {
	s := open(t, t.TempDir(), store.Options{})
	blocks := func() int64 {
		t.Helper()
		info, err := s.File().Stat()
		must(t, err)
		return info.Sys().(*syscall.Stat_t).Blocks
	}
	allocations := 0
	const commits = 200
	for i := range commits {
		before := blocks()
		must(t, s.Update(func(tx store.Tx) error { change(tx, i); return nil }))
		if blocks() != before {
			allocations++
		}
	}
	if allocations > commits/10 {
		t.Errorf("%d of %d commits allocated blocks", allocations, commits)
	}
}
