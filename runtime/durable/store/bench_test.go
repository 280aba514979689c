package store_test

import (
	"fmt"
	"testing"

	"github.com/topogen/topogen/runtime/durable/store"
)

// BenchmarkCommit makes commits of one new record each.
func BenchmarkCommit(b *testing.B) {
	s := open(b, b.TempDir(), store.Options{})
	for i := 0; b.Loop(); i++ {
		put(b, s, fmt.Sprint("key ", i), "a value of the length that a pending promise without a parameter has")
	}
}
