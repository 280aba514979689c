package durable_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/topogen/topogen/runtime/durable"
	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/store"
)

// BenchmarkSteps records steps of executions that run at the same time, in a store in memory
// and in one on disk, where each write is synced.
func BenchmarkSteps(b *testing.B) {
	for _, executions := range []int{1, 64} {
		b.Run(fmt.Sprint("memory/", executions), func(b *testing.B) { benchmarkSteps(b, store.NewMemory(), executions) })
		b.Run(fmt.Sprint("disk/", executions), func(b *testing.B) {
			s, err := store.Open(filepath.Join(b.TempDir(), "store"), store.Options{})
			if err != nil {
				b.Fatal(err)
			}
			benchmarkSteps(b, s, executions)
		})
	}
}

func benchmarkSteps(b *testing.B, s store.Store, executions int) {
	const steps = 50
	e, err := engine.Open(engine.Config{Store: s, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	f := durable.Func("f", func(ctx durable.Context, n int) (int, error) {
		for range n {
			if _, err := durable.Step(ctx, "charge", func(context.Context) (int, error) { return 1, nil }); err != nil {
				return 0, err
			}
		}
		return n, nil
	})
	w, err := durable.NewWorker(durable.Config{Backend: e, Group: "test", Functions: []durable.Function{f}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- w.Serve(b.Context()) }()
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		calls := make([]durable.Call, executions)
		for i := range calls {
			calls[i] = durable.Call{Func: "f", Arg: steps}
		}
		handles, err := durable.StartAll[int](b.Context(), w, calls...)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := durable.All(b.Context(), handles...); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N*executions*steps)/b.Elapsed().Seconds(), "steps/s")
	if err := w.Close(b.Context()); err != nil {
		b.Error(err)
	}
	if err := e.Close(b.Context()); err != nil {
		b.Error(err)
	}
	<-served
}
