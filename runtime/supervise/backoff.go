package supervise

import (
	"math"
	"time"

	"github.com/topogen/topogen/runtime/internal/bug"
)

const doublingsMax = 16 // as in dora's fault tolerance: a delay is at most 65536 times the first

// backoff is the delay before the k-th restart of a window, counted from 1, when
// chance draws from 0 up to 1.
func (p *Processor) backoff(k int, chance func() float64) time.Duration {
	d := max(p.Delay, 0)
	doublings := min(k-1, doublingsMax)
	if bug.On(bug.ExponentNotCapped) {
		doublings = k - 1
	}
	if d > math.MaxInt64>>doublings {
		d = math.MaxInt64
	} else {
		d <<= doublings
	}
	if p.MaxDelay > 0 {
		d = min(d, p.MaxDelay)
	}
	if p.Jitter > 0 && d > 0 { // not for NaN
		d -= min(d, time.Duration(float64(d)*min(p.Jitter, 1)*chance()))
	}
	return d
}
