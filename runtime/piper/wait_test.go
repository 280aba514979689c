package piper_test

import (
	"context"
	"reflect"
	"runtime"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/piper"
)

// until waits for a condition that other goroutines fulfill.
func until(t testing.TB, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(hangAfter)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("the condition was not fulfilled in time:\n%s", stacks())
		}
		runtime.Gosched()
	}
}

// stacks returns the stacks of all goroutines.
func stacks() string {
	buf := make([]byte, 1<<20)
	return string(buf[:runtime.Stack(buf, true)])
}

// methods is the prefix of the package's methods in stacks.
var methods = reflect.TypeFor[piper.Pool]().PkgPath() + ".(*"

// contextOf returns a context that ends after d.
func contextOf(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), d)
}
