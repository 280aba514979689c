package fsm

import (
	"errors"
	"strings"
)

// failure is what is remembered of a command's error: its text, and which of this
// package's errors it was.
type failure struct {
	kind byte
	text string
}

// The kinds of failures.
const (
	failureOwn     = iota + 1 // the update's own
	failurePanic              // ErrPanicked
	failureTooMany            // ErrTooMany
	failureKinds
)

func (f *failure) Error() string { return f.text }

// Is reports whether target is the error of this package that f stands for.
func (f *failure) Is(target error) bool {
	return f.kind == failurePanic && target == ErrPanicked || f.kind == failureTooMany && target == ErrTooMany
}

func newFailure(err error) *failure {
	f := &failure{kind: failureOwn, text: text(err)}
	switch {
	case errors.Is(err, ErrPanicked):
		f.kind = failurePanic
	case errors.Is(err, ErrTooMany):
		f.kind = failureTooMany
	}
	return f
}

// text is what err says, not too much of it, and not a panic.
func text(err error) (s string) {
	defer func() {
		if recover() != nil {
			s = "an error that panics when asked for its text"
		}
	}()
	s = err.Error()
	if len(s) > failureTextMax {
		s = strings.Clone(s[:failureTextMax])
	}
	return s
}
