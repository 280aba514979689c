package supervise

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrIntensity: a group restarted more often than its intensity allows. The error
	// names the group and unwraps to the last cause.
	ErrIntensity = errors.New("supervise: a group restarted too often")
	// ErrLimit: an instance used up its max_restarts. The error names it and unwraps
	// to the last cause.
	ErrLimit = errors.New("supervise: max_restarts used up")
)

// errUnknown is the cause of a failure that was reported without an error.
var errUnknown = errors.New("supervise: the instance failed without an error")

// limitError wraps ErrLimit. It reads the text of the cause only when its own text is
// read, because a Supervisor does not call user code.
type limitError struct {
	processor string
	instance  int
	restarts  int
	window    time.Duration
	cause     error // nil after a clean end
}

func (e *limitError) Error() string {
	within := ""
	if e.window > 0 {
		within = fmt.Sprintf(" within %v", e.window)
	}
	return fmt.Sprintf("%v: processor %q, instance %d: %s%s, and then %s",
		ErrLimit, e.processor, e.instance, restarts(e.restarts), within, endText(e.cause))
}

func (e *limitError) Unwrap() []error { return unwrapped(ErrLimit, e.cause) }

// intensityError wraps ErrIntensity. It reads the text of the cause as limitError does.
type intensityError struct {
	group     string
	intensity int
	period    time.Duration
	cause     error // nil after a clean end
}

func (e *intensityError) Error() string {
	return fmt.Sprintf("%v: group %q: more than %s within %v, and then %s",
		ErrIntensity, e.group, restarts(e.intensity), e.period, endText(e.cause))
}

func (e *intensityError) Unwrap() []error { return unwrapped(ErrIntensity, e.cause) }

func restarts(n int) string {
	if n == 1 {
		return "1 restart"
	}
	return fmt.Sprintf("%d restarts", n)
}

// endText describes the last end of a child that is not restarted.
func endText(cause error) string {
	if cause == nil {
		return "a clean end"
	}
	return fmt.Sprintf("%v", cause)
}

func unwrapped(kind, cause error) []error {
	if cause == nil {
		return []error{kind}
	}
	return []error{kind, cause}
}
