// Package backoff computes the delays before restarts and before further attempts.
package backoff

import (
	"math"
	"time"
)

const doublingsMax = 16 // a delay is at most 65536 times the first one

// Delay is the k-th delay, counted from 1. The first delay doubles each time, up to
// most (0 means no limit). A random part of it, between 0 and jitter, is subtracted;
// chance returns a random number in [0, 1).
func Delay(first, most time.Duration, jitter float64, k int, chance func() float64) time.Duration {
	d := max(first, 0)
	doublings := max(0, min(k-1, doublingsMax))
	if d > math.MaxInt64>>doublings {
		d = math.MaxInt64
	} else {
		d <<= doublings
	}
	if most > 0 {
		d = min(d, most)
	}
	if jitter > 0 && d > 0 { // false for NaN
		d -= min(d, time.Duration(float64(d)*min(jitter, 1)*chance()))
	}
	return d
}
