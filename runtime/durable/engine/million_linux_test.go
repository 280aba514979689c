package engine_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/store"
)

// BenchmarkMillion fills a store with a million pending promises, or with TOPOGEN_PROMISES of
// them, and measures its size, the memory, the time to open it, and the operations of one
// caller afterwards.
func BenchmarkMillion(b *testing.B) {
	const batch = 1000
	n := 1_000_000
	if text := os.Getenv("TOPOGEN_PROMISES"); text != "" {
		var err error
		n, err = strconv.Atoi(text)
		must(b, err)
	}
	dir := b.TempDir()
	s, err := store.Open(dir, store.Options{})
	must(b, err)
	e := start(b, engine.Config{Store: s})
	began := time.Now()
	data := strings.Repeat("x", 100)
	for i := range n / batch {
		var ops []protocol.Operation
		for j := range batch {
			p := create(fmt.Sprintf("orders:api.orders.PlaceOrder:%08d", (i*batch+j)*7919%n), protocol.TagExternal, "true", protocol.TagBranch, "b"+strconv.Itoa(j))
			p.TimeoutAt = time.Now().Add(time.Hour).UnixMilli() + int64(j)
			p.Param.Data = &data
			ops = append(ops, p)
		}
		_, err := e.DoAll(context.Background(), ops)
		must(b, err)
	}
	creates := float64(n) / time.Since(began).Seconds()
	killed := b.TempDir() // what a process that is killed leaves behind
	must(b, os.CopyFS(killed, os.DirFS(dir)))
	must(b, e.Close(context.Background()))
	began = time.Now()
	s, err = store.Open(killed, store.Options{})
	must(b, err)
	afterKill := time.Since(began)
	must(b, s.Close())
	runtime.GC()

	began = time.Now()
	s, err = store.Open(dir, store.Options{})
	must(b, err)
	e = start(b, engine.Config{Store: s})
	opened := time.Since(began)
	for b.Loop() {
		do(b, e, protocol.PromiseGet{ID: fmt.Sprintf("orders:api.orders.PlaceOrder:%08d", time.Now().UnixNano()%int64(n))}, 200)
	}
	runtime.GC()
	b.ReportMetric(creates, "creates/s")
	b.ReportMetric(opened.Seconds(), "open-s")
	b.ReportMetric(afterKill.Seconds(), "open-after-kill-s")
	b.ReportMetric(float64(s.Bytes())/(1<<20), "file-MiB")
	b.ReportMetric(float64(status(b, "RssAnon"))/1024, "RssAnon-MiB")
	b.ReportMetric(float64(status(b, "RssFile"))/1024, "RssFile-MiB")
	began = time.Now()
	for i := range 200 {
		do(b, e, create(fmt.Sprint("p", i)), 200)
	}
	b.ReportMetric(float64(time.Since(began).Microseconds())/200, "create-µs")
}

// status returns a field of /proc/self/status, in KiB.
func status(b *testing.B, field string) int {
	text, err := os.ReadFile("/proc/self/status")
	must(b, err)
	_, rest, _ := strings.Cut(string(text), field+":")
	n, err := strconv.Atoi(strings.Fields(rest)[0])
	must(b, err)
	return n
}
