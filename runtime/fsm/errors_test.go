package fsm_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/topogen/topogen/runtime/fsm"
)

func TestOutcomeKnown(t *testing.T) {
	for err, want := range map[error]bool{
		nil:                       true,
		io.EOF:                    true,
		fsm.ErrNotLeader:          true,
		fsm.ErrTooMany:            true,
		fsm.ErrTooLarge:           true,
		fsm.ErrNotRunning:         true,
		fsm.ErrStopped:            true,
		&fsm.PanicError{Value: 1}: true,
		fsm.ErrUnknown:            false,
		fsm.ErrSessionExpired:     false,
		fsm.ErrStale:              false,
		fsm.ErrWindow:             false,
		fmt.Errorf("%w: %w", fsm.ErrUnknown, io.EOF): false,
	} {
		if fsm.OutcomeKnown(err) != want {
			t.Errorf("%v: want known %t", err, want)
		}
	}
}

func TestNotLeader(t *testing.T) {
	err := error(&fsm.NotLeader{Leader: "n2"})
	if want := `fsm: not the leader: "n2" leads`; err.Error() != want || !errors.Is(err, fsm.ErrNotLeader) {
		t.Errorf("%q, want %q", err, want)
	}
	if !strings.Contains((&fsm.NotLeader{}).Error(), "the leader is not known") {
		t.Errorf("%v", &fsm.NotLeader{})
	}
}

// TestPanicErrorSeesThrough: errors.Is finds the error that the update panicked with.
func TestPanicErrorSeesThrough(t *testing.T) {
	err := error(&fsm.PanicError{Value: fmt.Errorf("at %d: %w", 3, io.EOF)})
	if !errors.Is(err, fsm.ErrPanicked) || !errors.Is(err, io.EOF) || err.Error() != "fsm: update panicked: at 3: EOF" {
		t.Errorf("%v", err)
	}
	if err := error(&fsm.PanicError{Value: 3}); errors.Unwrap(err) != nil {
		t.Errorf("%v wraps something", err)
	}
}
