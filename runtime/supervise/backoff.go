package supervise

import (
	"time"

	"github.com/topogen/topogen/runtime/internal/backoff"
)

// backoff returns the delay before the k-th restart of a window, counted from 1. chance
// returns random numbers from 0 up to, but not including, 1.
func (p *Processor) backoff(k int, chance func() float64) time.Duration {
	return backoff.Delay(p.Delay, p.MaxDelay, p.Jitter, k, chance)
}
