package freelist

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/topogen/topogen/internal/test/speed"
)

// TestHandOver: some goroutines allocate and fill blocks that others check and free. Some
// goroutines do both and make wrong calls.
func TestHandOver(t *testing.T) {
	blocks := speed.Pick(t, 4_000, 10_000, 40_000)
	for _, heaps := range []int{1, 4} {
		a := New(Heaps(heaps), ArenaSize(16<<10), Limit(4<<20))
		between := make(chan []byte, 64)
		var makers, takers sync.WaitGroup
		for g := range 3 {
			makers.Go(func() {
				r := rand.New(rand.NewPCG(uint64(heaps), uint64(g)))
				for range blocks {
					n := 1 + logUniform(r, 1, 20_000)
					b := a.Allocate(n)
					if b == nil {
						t.Error("the limit was reached")
						return
					}
					if b[0] != 0 || b[n-1] != 0 {
						t.Error("a block is dirty")
					}
					b[0], b[n-1] = byte(n), byte(n)
					between <- b
				}
			})
			takers.Go(func() {
				for b := range between {
					if n := len(b); b[0] != byte(n) || b[n-1] != byte(n) {
						t.Error("a block was overwritten")
					}
					if len(b) > 1 && !errors.Is(a.Free(b[1:]), ErrForeign) {
						t.Error("a part of a block was freed")
					}
					if err := a.Free(b); err != nil {
						t.Error(err)
					}
					_ = a.Stats()
				}
			})
		}
		makers.Wait()
		close(between)
		takers.Wait()
		verify(t, a)
		if s := a.Stats(); s.Frees != uint64(3*blocks) || s.InUse != 0 || s.Free != s.Held || s.Arenas > heaps {
			t.Errorf("%+v", s)
		}
	}
}

// TestOneFreeWins: several goroutines free the same blocks, and only one call succeeds.
func TestOneFreeWins(t *testing.T) {
	a := New(Heaps(2), ArenaSize(arenaMin))
	blocks := make([][]byte, 1000)
	for i := range blocks {
		blocks[i] = a.Allocate(1 + i)
	}
	var freers sync.WaitGroup
	for range 4 {
		freers.Go(func() {
			for _, b := range blocks {
				_ = a.Free(b) // three of them fail
			}
		})
	}
	freers.Wait()
	verify(t, a)
	if s := a.Stats(); s.Frees != 1000 || s.Failed != 3000 || s.Blocks != 0 {
		t.Errorf("%+v", s)
	}
}
