package border

import (
	"math/rand/v2"
	"testing"
)

// TestPerInstance compares a perInstance with a list of all messages.
func TestPerInstance(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := 1 + r.IntN(4)
		x := &perInstance{ways: make([]way, n)}
		var messages [][]bool // for each message, which instances have not handled it
		put, handled := make([]uint64, n), make([]uint64, n)
		for range 100 {
			switch i := r.IntN(n+1) - 1; r.IntN(3) {
			case 0:
				open := make([]bool, n)
				for k := range n {
					if open[k] = i == everyInstance || i == k; open[k] {
						put[k]++
					}
				}
				messages = append(messages, open)
				x.add(i)
			case 1: // a message that cannot be decoded
				x.add(i)
				x.undo(i)
			case 2:
				k := max(i, 0)
				more := uint64(r.IntN(4))
				more = min(more, put[k]-handled[k])
				handled[k] += more
				if x.set(k, handled[k]) != (more > 0) {
					t.Fatalf("seed %d: set reports the wrong change", seed)
				}
				for j := 0; more > 0; j++ {
					if messages[j][k] {
						messages[j][k] = false
						more--
					}
				}
			}
			want := uint64(0)
			for ; want < uint64(len(messages)); want++ {
				open := false
				for _, is := range messages[want] {
					open = open || is
				}
				if open {
					break
				}
			}
			if got := x.handled(); got != want {
				t.Fatalf("seed %d: %d messages are handled, want %d", seed, got, want)
			}
		}
	}
}
