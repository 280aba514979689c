package processtests_test

import (
	"testing"
	"time"
)

// await waits for a condition.
func await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}
