package supervise

import (
	"time"

	"github.com/topogen/topogen/runtime/internal/backoff"
)

// backoff is the delay before the k-th restart of a window, counted from 1, when
// chance draws from 0 up to 1.
func (p *Processor) backoff(k int, chance func() float64) time.Duration {
	return backoff.Delay(p.Delay, p.MaxDelay, p.Jitter, k, chance)
}
