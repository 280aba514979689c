//go:build unix

package processtests_test

import (
	"log/slog"
	"syscall"
	"testing"
	"time"

	"github.com/topogen/topogen/generated_test/isolated"
	"github.com/topogen/topogen/runtime/pool"
)

// benched is a running topology without log output.
func benched(b *testing.B) *isolated.Topology {
	top, err := isolated.New(isolated.Processors{}, pool.Logger(slog.New(slog.DiscardHandler)))
	if err != nil {
		b.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- top.Run(b.Context()) }()
	b.Cleanup(func() { <-ended })
	if _, err := top.Api().AskOrderToSkipping(b.Context(), isolated.Order{}); err != nil {
		b.Fatal(err)
	}
	return top
}

// BenchmarkIsolatedAsk measures a request from outside to a handler in a process, with its reply.
func BenchmarkIsolatedAsk(b *testing.B) {
	ask := benched(b).Api().AskOrderToSkipping
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ask(b.Context(), isolated.Order{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkIsolatedMessages measures a queued message and the message that its handler sends.
func BenchmarkIsolatedMessages(b *testing.B) {
	top := benched(b)
	before := top.Snapshot().Edges[isolated.EdgeSkippingCollectorParcel].Received
	b.ReportAllocs()
	b.ResetTimer()
	limit := make(chan struct{}, 64)
	for range b.N {
		limit <- struct{}{}
		go func() {
			top.Api().AskOrderToSkipping(b.Context(), isolated.Order{Do: "parcel"})
			<-limit
		}()
	}
	await(b, "all is handled", func() bool {
		return top.Snapshot().Edges[isolated.EdgeSkippingCollectorParcel].Received-before == uint64(b.N)
	})
}

// BenchmarkIsolatedBack measures the time from kill -9 until the next process has handled a message.
func BenchmarkIsolatedBack(b *testing.B) {
	ask := benched(b).Api().AskOrderToSkipping
	worst := time.Duration(0)
	for b.Loop() {
		o, err := ask(b.Context(), isolated.Order{})
		if err != nil {
			b.Fatal(err)
		}
		began := time.Now()
		syscall.Kill(o.Process, syscall.SIGKILL)
		for before := o.Process; o.Process == before; {
			if o, err = ask(b.Context(), isolated.Order{}); err != nil {
				b.Fatal(err)
			}
		}
		worst = max(worst, time.Since(began))
	}
	b.ReportMetric(float64(worst)/1e6, "worst-ms")
}
