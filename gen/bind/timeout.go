package bind

import (
	"context"
	"fmt"
	"time"
)

// goTimeout bounds the time that Bind and Verify wait for the go command, and for each
// type check. The go command may have to compile all imports, or may block on a pipe. Twenty
// lines of Go can keep a type check busy forever. A chain of 1,000 processors takes seconds.
const goTimeout = 3 * time.Minute

// within returns the result of do. If do takes longer than limit, within returns an error that
// names what. If the context ends, it returns the context's error. A type check cannot be
// stopped. After an error do may still be running, so the data that it writes must not be
// used again.
func within[T any](ctx context.Context, limit time.Duration, what string, do func() T) (result T, err error) {
	limited, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%s took more than %v", what, limit))
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
