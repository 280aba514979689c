package bind

import (
	"context"
	"fmt"
	"time"
)

// patience is how long Bind and Verify wait for the go command, which may have to
// compile all that is imported, or come upon a pipe; and for each type check, which
// twenty lines of Go can keep busy forever. A chain of 1,000 processors takes seconds.
const patience = 3 * time.Minute

// within returns what do returns, or an error that says that what took longer than most,
// or the context's. A type check cannot be stopped: after an error do may still be busy,
// and nothing that it writes to may be used again.
func within[T any](ctx context.Context, most time.Duration, what string, do func() T) (result T, err error) {
	limited, cancel := context.WithTimeoutCause(ctx, most, fmt.Errorf("%s took more than %v", what, most))
	defer cancel()
	done := make(chan T, 1)
	go func() { done <- do() }()
	select {
	case result = <-done:
		return result, nil
	case <-limited.Done():
		return result, context.Cause(limited)
	}
}
