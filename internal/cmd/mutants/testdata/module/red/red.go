// Package red has tests that fail, or that take long, without a mutant.
package red

import "time"

const (
	answer = 41
	delay  = 1500 * time.Millisecond
)
