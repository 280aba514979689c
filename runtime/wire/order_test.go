package wire_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/topogen/topogen/runtime/internal/race"
	"github.com/topogen/topogen/runtime/wire"
)

// TestOrder sorts pairs of any length by their bytes, and does not change the bytes
// before them.
func TestOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		pairs := make([][]byte, rng.IntN(20))
		for i := range pairs {
			pairs[i] = make([]byte, 1+rng.IntN(5)*rng.IntN(40))
			for j := range pairs[i] {
				pairs[i][j] = byte(rng.IntN(3))
			}
		}
		b := []byte("before")
		o := wire.Ordered(b, len(pairs))
		for _, p := range pairs {
			b = append(b, p...)
			o.Add(b)
		}
		o.Sort(b)
		slices.SortFunc(pairs, bytes.Compare)
		if want := append([]byte("before"), bytes.Join(pairs, nil)...); !bytes.Equal(b, want) {
			t.Fatalf("%q, want %q", b, want)
		}
	}
}

// TestOrderAllocatesNothing: Order does not allocate once it has grown.
func TestOrderAllocatesNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector empties pools at random")
	}
	b := make([]byte, 0, 100)
	if n := testing.AllocsPerRun(1000, func() {
		b = b[:0]
		o := wire.Ordered(b, 10)
		for i := range 10 {
			b = append(b, byte(10-i), 7)
			o.Add(b)
		}
		o.Sort(b)
	}); n > 0.5 { // the pool is emptied sometimes
		t.Errorf("%v allocations", n)
	}
}
