package freelist

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/topogen/topogen/internal/test/speed"
)

// TestFragmentationDoesNotCreep runs a million operations of each load. The memory held
// stays within a ratio of the largest use so far, and the ratio does not grow in the
// second half.
func TestFragmentationDoesNotCreep(t *testing.T) {
	speed.NoRace(t)
	operations := speed.Pick(t, 100_000, 1_000_000, 1_000_000)
	for _, load := range []struct {
		name string
		size func(r *rand.Rand, age float64) int // age: from 0 to 1
		live int                                 // blocks
		most float64                             // bytes held per byte in use
	}{
		{"equal", func(*rand.Rand, float64) int { return 1000 }, 20_000, 1.1},
		{"two sizes", func(r *rand.Rand, _ float64) int { return 192 + 5000*r.IntN(2) }, 8_000, 1.1},
		{"uniform", func(r *rand.Rand, _ float64) int { return 1 + r.IntN(4096) }, 10_000, 1.1},
		{"many small, few large", func(r *rand.Rand, _ float64) int { return logUniform(r, 64, 64<<10) }, 2_000, 1.3},
		{"growing", func(r *rand.Rand, age float64) int { return 64 + r.IntN(500+int(8000*age)) }, 10_000, 1.5},
		{"shrinking", func(r *rand.Rand, age float64) int { return 64 + r.IntN(1+int(8000*(1-age))) }, 5_000, 1.15},
		{"parts of an arena", func(r *rand.Rand, _ float64) int { return logUniform(r, 1<<10, 1<<19) }, 500, 1.4},
	} {
		t.Run(load.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(29, 1))
			a := New(Heaps(1), Dirty())
			live := make([][]byte, load.live)
			for at := range live {
				live[at] = a.Allocate(load.size(r, 0))
			}
			var worst [2]float64 // by half
			peak, rounds := 0, operations/2
			for i := range rounds {
				at := r.IntN(len(live))
				if err := a.Free(live[at]); err != nil {
					t.Fatal(err)
				}
				live[at] = a.Allocate(load.size(r, float64(i)/float64(rounds)))
				if i%500 != 0 {
					continue
				}
				s, half := a.Stats(), 2*i/rounds
				peak = max(peak, s.InUse)
				worst[half] = max(worst[half], float64(s.Held)/float64(peak))
			}
			t.Logf("held per byte in use: %.3f, then %.3f", worst[0], worst[1])
			if worst[0] > load.most || worst[1] > 1.05*worst[0] {
				t.Errorf("held per byte in use: %.3f, then %.3f; want at most %v, and no growth", worst[0], worst[1], load.most)
			}
			for _, b := range live {
				if err := a.Free(b); err != nil {
					t.Fatal(err)
				}
			}
			verify(t, a)
			if s := a.Stats(); s.Arenas > 1 || s.Free != s.Held || s.Fragmentation() != 0 {
				t.Errorf("after all was freed: %+v", s)
			}
		})
	}
}

// logUniform returns sizes for which every power of two is equally likely.
func logUniform(r *rand.Rand, from, to float64) int {
	return int(from * math.Exp(r.Float64()*math.Log(to/from)))
}
