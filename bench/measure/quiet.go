package measure

import (
	"runtime"
	"sync"
	"time"

	"github.com/topogen/topogen/bench/work"
)

const (
	probeTime   = 10 * time.Millisecond
	probePause  = 100 * time.Millisecond
	probeShare  = 0.9 // of the processors, to count as free
	probeSteps  = 1000
	quietWithin = 10 * time.Second
)

// patience is how long a contest may still wait for a quiet machine.
type patience time.Duration

// await waits until this process gets all the processors that it may use. On a
// machine that it shares it may get one of two for seconds on end, and then a
// contest of two threads is another contest. Where patience ends it goes on: the
// processor time in the table tells.
func (p *patience) await() {
	for *p > 0 && !free() {
		time.Sleep(probePause)
		*p -= patience(probePause + probeTime)
	}
}

// free keeps all processors busy for a moment and sees how much of them it got.
func free() bool {
	n := runtime.GOMAXPROCS(0)
	var all sync.WaitGroup
	cpu, began := CPU(), time.Now()
	for range n {
		all.Go(func() {
			for time.Since(began) < probeTime {
				work.Do(probeSteps)
			}
		})
	}
	all.Wait()
	return float64(CPU()-cpu) > probeShare*float64(n)*float64(time.Since(began))
}
