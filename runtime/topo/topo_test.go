package topo

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestTheErrorsDiffer checks that the errors differ, also when wrapped, and name their
// package.
func TestTheErrorsDiffer(t *testing.T) {
	all := []error{Done, Idle, ErrFull, ErrStopping, ErrClosed, ErrNoInstance}
	for i, a := range all {
		if !strings.HasPrefix(a.Error(), "topo: ") {
			t.Errorf("%q does not name its package", a)
		}
		for j, b := range all {
			if errors.Is(fmt.Errorf("wrapped: %w", a), b) != (i == j) {
				t.Errorf("errors.Is(%v, %v) is %v", a, b, i != j)
			}
		}
	}
}
