package topo

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestTheErrorsDiffer from each other, also when wrapped, and say where they come
// from.
func TestTheErrorsDiffer(t *testing.T) {
	all := []error{Done, Idle, ErrFull, ErrStopping, ErrClosed, ErrNoInstance}
	for i, a := range all {
		if !strings.HasPrefix(a.Error(), "topo: ") {
			t.Errorf("%q does not name its package", a)
		}
		for j, b := range all {
			if errors.Is(fmt.Errorf("wrapped: %w", a), b) != (i == j) {
				t.Errorf("%v is %v", a, b)
			}
		}
	}
}
