package allocated_test

import (
	"runtime"
	"testing"

	"github.com/topogen/topogen/internal/test/allocated"
)

// recorder counts errors.
type recorder struct {
	testing.TB
	errors int
}

func (r *recorder) Helper()               {}
func (r *recorder) Errorf(string, ...any) { r.errors++ }

var sink []byte

func TestWithin(t *testing.T) {
	for _, test := range []struct{ most, size, times, errors int }{
		{most: 2 << 20, size: 1 << 20, times: 1},
		{most: 1 << 20, size: 2 << 20, times: 1, errors: 1},
		{most: 1000 << 10, size: 1 << 10, times: 1000},
		{most: 900 << 10, size: 1 << 10, times: 1000, errors: 1},
		{most: 100 * 16, size: 16, times: 100},
		{most: 100 * 16, size: 16, times: 1000, errors: 1},
	} {
		r := &recorder{TB: t}
		allocated.Within(r, test.most, func() {
			for range test.times {
				sink = make([]byte, test.size)
			}
		})
		if r.errors != test.errors {
			t.Errorf("%+v: %d errors", test, r.errors)
		}
	}
}

// TestEarlier fills blocks of the Go runtime, which its cheap counters of memory add during the
// call, in a collection.
func TestEarlier(t *testing.T) {
	for size := 16; size <= 8<<10; size += 16 {
		sink = make([]byte, size)
	}
	allocated.Within(t, 0, runtime.GC)
}
