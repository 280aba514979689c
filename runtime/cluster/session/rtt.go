package session

import "time"

// rtt estimates the round trip and its variation, as RFC 6298 does. Each transmission has
// its own stamp, so a sample is never ambiguous.
type rtt struct {
	smooth, variation time.Duration
}

func (r *rtt) sample(d time.Duration) {
	d = max(d, 0)
	if r.smooth == 0 {
		r.smooth, r.variation = max(d, 1), d/2
		return
	}
	r.variation += ((r.smooth - d).Abs() - r.variation) / 4
	r.smooth = max(r.smooth+(d-r.smooth)/8, 1)
}

// timeout is the time after which a frame without an answer is sent again.
func (r *rtt) timeout() time.Duration {
	if r.smooth == 0 {
		return firstTimeout
	}
	return r.smooth + max(clockGranularity, 4*r.variation) + ackDelayMax
}
