//go:build unix

package wal_test

import (
	"errors"
	"math"
	"syscall"
	"testing"

	"github.com/topogen/topogen/runtime/raft/wal"
)

// TestLargeSnapshot: a snapshot without a body that no reader would accept is refused. Its data
// is not from the heap of Go, which fills 2 GiB with zeros if it has used the addresses before.
func TestLargeSnapshot(t *testing.T) {
	if math.MaxInt == math.MaxInt32 {
		t.Skip("an encoded snapshot of 2 GiB does not fit into 32-bit memory")
	}
	data, err := syscall.Mmap(-1, 0, 1<<31-1, syscall.PROT_READ, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	must(t, err)
	t.Cleanup(func() { _ = syscall.Munmap(data) })
	large := snapshot(5, 1, "")
	large.Data = data
	eachLog(t, func(t *testing.T, l wal.Log, reopen func() (wal.Log, wal.Stored)) {
		if err := l.SaveSnapshot(large); !errors.Is(err, wal.ErrTooLarge) || !errors.Is(err, wal.ErrInvalid) {
			t.Error(err)
		}
		if _, s := reopen(); s.Snapshot != nil {
			t.Errorf("%+v", s)
		}
	})
}
