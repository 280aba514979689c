package pipeline

import (
	"context"
	"testing"
	"unsafe"

	"github.com/topogen/topogen/runtime/pool"
)

// instanceBytesMax is the maximum size of an idle instance without the user's state.
const instanceBytesMax = 256

func TestIdleInstanceIsSmall(t *testing.T) {
	for name, size := range map[string]uintptr{
		"a": unsafe.Sizeof(aInstance{}), "b": unsafe.Sizeof(bInstance{}), "c": unsafe.Sizeof(cInstance{}),
	} {
		t.Logf("%s: %d bytes", name, size)
		if size > instanceBytesMax {
			t.Errorf("an instance of %s takes %d bytes", name, size)
		}
	}
}

func run(t testing.TB, messages int64, workers int) {
	top, err := New(Processors{}, pool.Workers(workers))
	if err != nil {
		t.Fatal(err)
	}
	top.A(0).Left = messages
	if err := top.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if c := top.C(0); c.Count != messages || c.Sum != messages*(messages-1)/2 {
		t.Errorf("c has seen %d messages with the sum %d", c.Count, c.Sum)
	}
}

func TestEverythingArrives(t *testing.T) {
	for _, workers := range []int{1, 2} {
		run(t, 100_000, workers)
	}
}

// BenchmarkReceive is the cost of one message: Send, queue and Receive.
func BenchmarkReceive(b *testing.B) {
	b.ReportAllocs()
	run(b, int64(b.N)/2+1, 1)
}
