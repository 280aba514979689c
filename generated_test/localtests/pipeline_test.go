package localtests_test

import (
	"context"
	"testing"

	"github.com/topogen/topogen/generated_test/pipeline"
	"github.com/topogen/topogen/runtime/pool"
)

// pipelineInstanceBytesMax is the maximum size of an idle instance without the user's state.
const pipelineInstanceBytesMax = 256

func TestPipelineIdleInstanceIsSmall(t *testing.T) {
	for name, size := range pipeline.InstanceBytes {
		t.Logf("%s: %d bytes", name, size)
		if size > pipelineInstanceBytesMax {
			t.Errorf("an instance of %s takes %d bytes", name, size)
		}
	}
}

func runPipeline(t testing.TB, messages int64, workers int) {
	top, err := pipeline.New(pipeline.Processors{}, pool.Workers(workers))
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

func TestPipelineEverythingArrives(t *testing.T) {
	for _, workers := range []int{1, 2} {
		runPipeline(t, 100_000, workers)
	}
}

// BenchmarkPipelineReceive is the cost of one message: Send, queue and Receive.
func BenchmarkPipelineReceive(b *testing.B) {
	b.ReportAllocs()
	runPipeline(b, int64(b.N)/2+1, 1)
}
