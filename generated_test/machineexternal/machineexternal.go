// Package machineexternal has a state machine that is used from outside alone, with
// a state that has no name of its own.
package machineexternal

import "errors"

// Add adds to the sum.
type Add int64

// ErrNegative is an error that changes nothing.
var ErrNegative = errors.New("negative")

// Update adds, by a value receiver, and returns the sum.
func (a Add) Update(sum *int64) (int64, error) {
	if a < 0 {
		return 0, ErrNegative
	}
	*sum += int64(a)
	return *sum, nil
}
