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
	probeShare  = 0.9 // share of the processors that counts as idle
	probeSteps  = 1000
	quietWithin = 10 * time.Second
)

// patience is how long a contest may still wait for an idle computer.
type patience time.Duration

// await waits until this process gets all the processors that it may use. On a shared
// computer it may get only one of two for seconds, which would distort a contest of two
// threads. When the patience is used up the contest continues, and the processor time in
// the table shows the disturbance.
func (p *patience) await() {
	for *p > 0 && !free() {
		time.Sleep(probePause)
		*p -= patience(probePause + probeTime)
	}
}

// free uses all processors for a moment and reports whether the process got enough of
// their time.
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
