package pool_test

import (
	"context"
	"runtime"
	"testing"
	"time"
)

// until waits for a condition that other goroutines bring about.
func until(t testing.TB, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(hangAfter)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("it never comes about:\n%s", stacks())
		}
		runtime.Gosched()
	}
}

// stacks are those of all goroutines.
func stacks() string {
	buf := make([]byte, 1<<20)
	return string(buf[:runtime.Stack(buf, true)])
}

// contextOf returns a context that ends after d.
func contextOf(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), d)
}
