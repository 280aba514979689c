package engine_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/store"
)

// syncs returns how many times in a second the disk can overwrite a page and sync it.
func syncs(b *testing.B, dir string) float64 {
	f, err := os.Create(filepath.Join(dir, "syncs"))
	must(b, err)
	defer func() { must(b, f.Close()) }()
	page := make([]byte, 4096)
	for range 256 {
		_, err = f.Write(page)
		must(b, err)
	}
	must(b, f.Sync())
	n, start := 0, time.Now()
	for ; time.Since(start) < 500*time.Millisecond; n++ {
		_, err = f.WriteAt(page, int64(n%256)*4096)
		must(b, err)
		must(b, syncData(f))
	}
	return float64(n) / time.Since(start).Seconds()
}

// BenchmarkCreateSettle measures a create and a settle by each of several callers, as
// operations for each sync of the disk in the same run.
func BenchmarkCreateSettle(b *testing.B) {
	for _, callers := range []int{1, 16, 64, 256} {
		b.Run(fmt.Sprint(callers), func(b *testing.B) {
			dir := b.TempDir()
			before := syncs(b, dir)
			s, err := store.Open(filepath.Join(dir, "store"), store.Options{})
			must(b, err)
			e := start(b, engine.Config{Store: s})
			var next atomic.Int64
			var group sync.WaitGroup
			b.ResetTimer()
			began := time.Now()
			for range callers {
				group.Go(func() {
					for {
						i := next.Add(1)
						if i > int64(b.N) {
							return
						}
						id := fmt.Sprint("promise-", i)
						for _, op := range []protocol.Operation{create(id), settle(id)} {
							if r, err := e.Do(context.Background(), op); err != nil || r.Status != 200 {
								b.Errorf("%v %v", r, err)
							}
						}
					}
				})
			}
			group.Wait()
			rate := 2 * float64(b.N) / time.Since(began).Seconds()
			b.StopTimer()
			stats := e.Stats()
			must(b, e.Close(context.Background()))
			disk := (before + syncs(b, dir)) / 2
			b.ReportMetric(rate, "ops/s")
			b.ReportMetric(disk, "syncs/s")
			b.ReportMetric(rate/disk, "ops/sync")
			b.ReportMetric(float64(stats.Operations)/float64(max(1, stats.Commits.Count)), "ops/commit")
		})
	}
}
