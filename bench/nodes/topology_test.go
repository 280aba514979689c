package nodes

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/bench/topologies/oneway"
	"github.com/topogen/topogen/runtime/pool"
)

func init() { roles["topology"] = runNode }

// runNode runs the node with the sink.
func runNode(string) error {
	t, err := oneway.New(oneway.Processors{}, quiet())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		untilClosed()
		cancel()
	}()
	t.Api().Close()
	fmt.Println("started")
	return t.Run(ctx)
}

func quiet() pool.Option { return pool.Logger(slog.New(slog.NewTextHandler(io.Discard, nil))) }

// twoNodes runs the topology on this process and a child, with a number of messages, and
// returns when both are connected.
func twoNodes(b *testing.B, messages int) (t *oneway.Topology, ended chan error) {
	nodes := "n1=" + freeAddress(b) + ",n2=" + freeAddress(b)
	dir := b.TempDir()
	b.Setenv("TOPOGEN_NODES", nodes)
	b.Setenv("TOPOGEN_DIR", dir)
	oneway.Messages = messages
	start(b, "topology", "", "TOPOGEN_NODE=n2")
	t, err := oneway.New(oneway.Processors{}, quiet(), pool.Node("n1"))
	if err != nil {
		b.Fatal(err)
	}
	ended = make(chan error, 1)
	go func() { ended <- t.Run(context.Background()) }()
	if _, err := t.Api().AskQuestionToSink(context.Background(), oneway.Question{}); err != nil {
		b.Fatal(err)
	}
	return t, ended
}

func freeAddress(b *testing.B) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func finish(b *testing.B, t *oneway.Topology, ended chan error) {
	b.Helper()
	t.Api().Close()
	select {
	case err := <-ended:
		if err != nil {
			b.Fatal(err)
		}
	case <-time.After(time.Minute):
		b.Fatal("the topology does not end")
	}
	_ = os.Stdout.Sync()
}

func BenchmarkOneWay_topogen(b *testing.B) {
	t, ended := twoNodes(b, b.N)
	b.SetBytes(messageBytes)
	own, other := processorTime(b, started)
	b.ResetTimer()
	awaitAll(b, t)
	b.StopTimer()
	reportProcessorTime(b, own, other)
	finish(b, t, ended)
}

// awaitAll waits until all messages are handled.
func awaitAll(b *testing.B, t *oneway.Topology) {
	for t.Snapshot().Edges[oneway.EdgeSourceSinkMessage].Received < uint64(b.N) {
		time.Sleep(time.Millisecond) // much shorter than the whole
	}
}

// BenchmarkWire_topogen counts what the process with the source writes, per message, as a
// multiple of the encoded message. Nearly all of it goes to the connection.
func BenchmarkWire_topogen(b *testing.B) {
	t, ended := twoNodes(b, b.N)
	before := written(b)
	b.ResetTimer()
	awaitAll(b, t)
	b.StopTimer()
	b.ReportMetric(float64(written(b)-before)/float64(b.N)/messageBytes, "wire/encoded")
	finish(b, t, ended)
}

// written returns the number of bytes that system calls of this process have written.
func written(b *testing.B) (n int) {
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		b.Skip("needs Linux: ", err)
	}
	_, rest, _ := strings.Cut(string(text), "wchar: ")
	if _, err := fmt.Sscan(rest, &n); err != nil {
		b.Fatal(err)
	}
	return n
}

func BenchmarkRoundTrip_topogen(b *testing.B) {
	t, ended := twoNodes(b, 0)
	own, other := processorTime(b, started)
	b.ResetTimer()
	for range b.N {
		if _, err := t.Api().AskQuestionToSink(context.Background(), oneway.Question{N: 1}); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	reportProcessorTime(b, own, other)
	finish(b, t, ended)
}
