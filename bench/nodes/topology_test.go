package nodes

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
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
	nodes := "TOPOGEN_NODES="
	for i, name := range []string{"n1", "n2"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		defer l.Close()
		if i > 0 {
			nodes += ","
		}
		nodes += name + "=" + l.Addr().String()
		l.Close()
	}
	dir := b.TempDir()
	b.Setenv("TOPOGEN_NODES", nodes[len("TOPOGEN_NODES="):])
	b.Setenv("TOPOGEN_DIR", dir)
	oneway.Messages = messages
	start(b, "topology", "", nodes, "TOPOGEN_NODE=n2", "TOPOGEN_DIR="+dir)
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
	b.ResetTimer()
	for {
		e := t.Snapshot().Edges[oneway.EdgeSourceSinkMessage]
		if e.Received == uint64(b.N) {
			break
		}
		time.Sleep(time.Millisecond) // much shorter than the whole
	}
	b.StopTimer()
	finish(b, t, ended)
}

func BenchmarkRoundTrip_topogen(b *testing.B) {
	t, ended := twoNodes(b, 0)
	b.ResetTimer()
	for range b.N {
		if _, err := t.Api().AskQuestionToSink(context.Background(), oneway.Question{N: 1}); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	finish(b, t, ended)
}

func BenchmarkSameNode_topogen(b *testing.B) {
	t, ended := twoNodes(b, 0)
	b.ResetTimer()
	for range b.N {
		if _, err := t.Api().AskQuestionToNear(context.Background(), oneway.Question{N: 1}); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	finish(b, t, ended)
}
