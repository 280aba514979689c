// Package machineexternal has a state machine that only callers outside the pool use. The type
// of its state has no name.
package machineexternal

import "errors"

// Add adds to the sum.
type Add int64

// ErrNegative is the error of an update that leaves the state unchanged.
var ErrNegative = errors.New("negative")

// Update adds, by a value receiver, and returns the sum.
func (a Add) Update(sum *int64) (int64, error) {
	if a < 0 {
		return 0, ErrNegative
	}
	*sum += int64(a)
	return *sum, nil
}
