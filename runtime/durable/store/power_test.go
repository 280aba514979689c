//go:build unix

package store_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/topogen/topogen/runtime/durable/store"
)

// A diskWrite is a write of bbolt.
type diskWrite struct {
	at   int64
	data []byte
}

// TestPowerFailure simulates a power failure in each commit: of the pages that were written
// but not synced, any sectors can be missing. bbolt writes all pages, syncs, writes a meta
// page, and syncs.
func TestPowerFailure(t *testing.T) {
	commits, tries := 60, 12
	if testing.Short() {
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
	dir := t.TempDir()
	for i := 1; i <= commits; i++ {
		before := dump(t, s)
		image := read(t, s.File())
		writes = writes[:0]
		must(t, s.Update(func(tx store.Tx) error { change(tx, i); return nil }))
		after := dump(t, s)
		pages, meta := writes[:len(writes)-1], writes[len(writes)-1]
		if meta.at > pageBytes {
			t.Fatalf("the last write of a commit must be a meta page, it is at %d", meta.at)
		}
		for range tries {
			b := bytes.Clone(image)
			for _, w := range pages {
				b = lose(rng, b, w)
			}
			recovers(t, dir, b, before, fmt.Sprintf("commit %d, before the first sync", i))
		}
		b := bytes.Clone(image)
		for _, w := range pages {
			b = apply(b, w.at, w.data)
		}
		for range 3 { // the meta page is in one sector: written or not
			torn := lose(rng, bytes.Clone(b), meta)
			want := before
			if bytes.Equal(torn[meta.at:meta.at+512], meta.data[:512]) {
				want = after
			}
			recovers(t, dir, torn, want, fmt.Sprintf("commit %d, before the second sync", i))
		}
	}
}

// lose applies a part of the sectors of a write.
func lose(rng *rand.Rand, b []byte, w diskWrite) []byte {
	const sector = 512
	kept := rng.IntN(3) // none, some, all
	for i := 0; i < len(w.data); i += sector {
		if kept == 2 || kept == 1 && rng.IntN(2) == 0 {
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

// recovers checks the state that a store has with the given file.
func recovers(t *testing.T, dir string, b []byte, want map[string]string, what string) {
	t.Helper()
	must(t, os.WriteFile(file(dir), b, 0o600))
	s, err := store.Open(dir, store.Options{})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if !maps.Equal(dump(t, s), want) {
		t.Fatalf("%s: the store has another state", what)
	}
	must(t, s.Close())
}

// read returns the content of a file up to its last byte that is not zero.
func read(t *testing.T, f *os.File) []byte {
	t.Helper()
	b, err := os.ReadFile(f.Name())
	must(t, err)
	n := len(bytes.TrimRight(b, "\x00"))
	return b[:min(len(b), (n/pageBytes+2)*pageBytes)]
}
