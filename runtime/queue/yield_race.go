//go:build race

package queue

import (
	"math/rand/v2"
	"runtime"
)

const yields = true

// maybeYield lets other goroutines run, at random.
func maybeYield() {
	const oneIn = 8
	if rand.IntN(oneIn) == 0 {
		runtime.Gosched()
	}
}
