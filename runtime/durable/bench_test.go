package durable

import (
	"context"
	"fmt"
	"testing"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// BenchmarkReplay replays an execution of a thousand steps, from its records to its last
// step. It reports the steps in a second, and the steps in a second of processor time,
// which other programs on the computer disturb less.
func BenchmarkReplay(b *testing.B) {
	const steps = 1000
	type receipt struct {
		ID     string
		Amount int
		Lines  []string
	}
	want := receipt{"order-17", 1234, []string{"apples", "pears"}}
	f := Func("f", func(ctx Context, _ int) (int, error) {
		for range steps {
			got, err := Step(ctx, "charge", func(context.Context) (receipt, error) { return want, nil })
			if err != nil || got.ID != want.ID {
				b.Errorf("the step returned %v, %v", got, err)
			}
		}
		return steps, nil
	})
	records := make([]protocol.Promise, steps)
	value, err := encode(want)
	if err != nil {
		b.Fatal(err)
	}
	for i := range records {
		records[i] = protocol.Promise{
			ID: fmt.Sprint("shop:api.orders.Place:17:#", i+1), State: protocol.Resolved, Value: value,
			Tags: map[string]string{tagStep: "charge", protocol.TagScope: "local", protocol.TagParent: "shop:api.orders.Place:17"},
		}
	}
	param, err := encodeCall("f", 1)
	if err != nil {
		b.Fatal(err)
	}
	w, err := NewWorker(Config{Backend: noBackend{}, Group: "test", Functions: []Function{f}})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	cpu := cpuTime()
	for range b.N {
		p := &protocol.Promise{ID: "shop:api.orders.Place:17", State: protocol.Pending, Param: param, TimeoutAt: 1 << 50}
		name, arg, err := decodeCall(p.Param)
		if err != nil {
			b.Fatal(err)
		}
		e := &execution{worker: w, function: w.functions[name], backend: &replayer{w: w}, promise: p, arg: arg, origin: originOf(p), complete: true, finished: make(chan struct{})}
		e.journal = newJournal(p.ID, records)
		if o := (&Activation{e: e}).Run(context.Background(), f.Run); o.State != Completed {
			b.Fatalf("the replay ended %v: %v", o.State, o.Err)
		}
	}
	b.StopTimer()
	perStep := float64(b.N) * steps
	b.ReportMetric(perStep/b.Elapsed().Seconds(), "steps/s")
	if cpu = cpuTime() - cpu; cpu > 0 {
		b.ReportMetric(perStep/cpu.Seconds(), "steps/cpu-s")
	}
}

// noBackend is not used by a replay.
type noBackend struct{ Backend }
