//go:build unix

package store_test

import (
	"bytes"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/topogen/topogen/runtime/durable/store"
	"github.com/topogen/topogen/runtime/internal/race"
)

// A diskWrite is a write of bbolt.
type diskWrite struct {
	at   int64
	data []byte
}

// TestPowerFailure simulates a power failure in each commit: of the pages that were not
// synced yet, any sectors can be missing. The store has the state before or after the
// commit, and after it if the disk has everything.
func TestPowerFailure(t *testing.T) {
	commits, tries := 60, 15
	if testing.Short() || race.Enabled { // one goroutine
		commits = 15
	}
	s := open(t, t.TempDir(), store.Options{})
	var writes []diskWrite
	s.HookWrites(func(f store.WriteAt) store.WriteAt {
		return func(b []byte, at int64) (int, error) {
			writes = append(writes, diskWrite{at, bytes.Clone(b)})
			return f(b, at)
		}
	})
	rng := rand.New(rand.NewPCG(7, 8))
	dir := memoryDir(t)
	undone, kept := 0, 0
	for i := 1; i <= commits; i++ {
		before := dump(t, s)
		image := read(t, s.File())
		writes = writes[:0]
		must(t, s.Update(func(tx store.Tx) error { change(tx, i); return nil }))
		after := dump(t, s)
		whole := bytes.Clone(image)
		for _, w := range writes {
			whole = apply(whole, w.at, w.data)
		}
		for try := range tries {
			b := bytes.Clone(image)
			lost := []float64{0.002, 0.02, 0.3, 0.8}[try%4]
			for _, w := range writes {
				b = lose(rng, b, w, lost)
			}
			if got := state(t, dir, b); maps.Equal(got, after) {
				kept++
			} else if !maps.Equal(got, before) {
				t.Fatalf("commit %d: the store has the state of no commit", i)
			} else if undone++; bytes.Equal(b, whole) {
				t.Fatalf("commit %d: all sectors were written, but the commit is missing", i)
			}
		}
		if got := state(t, dir, whole); !maps.Equal(got, after) {
			t.Fatalf("commit %d: all sectors were written, but the commit is missing", i)
		}
	}
	if undone < commits || kept == 0 {
		t.Errorf("%d commits were undone, %d kept: the test tests little", undone, kept)
	}
}

// lose applies a write without some of its sectors.
func lose(rng *rand.Rand, b []byte, w diskWrite, lost float64) []byte {
	const sector = 512
	for i := 0; i < len(w.data); i += sector {
		if rng.Float64() >= lost {
			b = apply(b, w.at+int64(i), w.data[i:min(i+sector, len(w.data))])
		}
	}
	return b
}

func apply(b []byte, at int64, data []byte) []byte {
	if more := int(at) + len(data) - len(b); more > 0 {
		b = append(b, make([]byte, more)...)
	}
	copy(b[at:], data)
	return b
}

// state returns the content of a store with the given file.
func state(t *testing.T, dir string, b []byte) map[string]string {
	t.Helper()
	must(t, os.WriteFile(file(dir), b, 0o600))
	s, err := store.Open(dir, store.Options{Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	defer func() { must(t, s.Close()) }()
	return dump(t, s)
}

// read returns the content of a file up to its last byte that is not zero.
func read(t *testing.T, f *os.File) []byte {
	t.Helper()
	b, err := os.ReadFile(f.Name())
	must(t, err)
	n := len(bytes.TrimRight(b, "\x00"))
	return b[:min(len(b), (n/pageBytes+2)*pageBytes)]
}
