package piper

import (
	"errors"
	"fmt"
	"runtime/debug"
	"testing"
)

// TestErrorsForCallersHaveNoStack checks the error that a caller gets for an instance that has panicked or
// was given up after a panic.
func TestErrorsForCallersHaveNoStack(t *testing.T) {
	cause := errors.New("panic: bug")
	e := &HandlerError{Processor: "p", Method: "Receive", Err: cause, Stack: debug.Stack()}
	for err, want := range map[error]string{
		cause:                              "panic: bug",
		e:                                  `processor "p", instance 0: Receive: panic: bug`,
		fmt.Errorf("%w: %w", ErrGaveUp, e): ErrGaveUp.Error() + `: processor "p", instance 0: Receive: panic: bug`,
	} {
		if got := forCaller(err); got.Error() != want || !errors.Is(got, cause) {
			t.Errorf("got %v, want %s", got, want)
		}
	}
}
