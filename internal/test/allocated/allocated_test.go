package allocated_test

import (
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
	r := &recorder{TB: t}
	allocated.Within(r, 2<<20, func() { sink = make([]byte, 1<<20) })
	if r.errors != 0 {
		t.Error("1 MiB is more than 2 MiB")
	}
	allocated.Within(r, 1<<20, func() { sink = make([]byte, 2<<20) })
	if r.errors != 1 {
		t.Error("2 MiB is within 1 MiB")
	}
	allocated.Within(r, 1<<20, func() {
		for range 2000 {
			sink = make([]byte, 1<<10)
		}
	})
	if r.errors != 2 {
		t.Error("2000 KiB is within 1 MiB")
	}
}
