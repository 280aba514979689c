package bench

import (
	"testing"

	"github.com/topogen/topogen/bench/measure"
	"github.com/topogen/topogen/bench/peers"
	"github.com/topogen/topogen/bench/suite"
	"github.com/topogen/topogen/bench/topologies/stall"
)

// BenchmarkContest runs each contender of each contest separately:
//
//	go test -bench 'Contest/pipeline$'
func BenchmarkContest(b *testing.B) {
	for _, c := range suite.Contests() {
		b.Run(c.Name, func(b *testing.B) {
			for _, contender := range c.Contenders {
				b.Run(contender.Name, func(b *testing.B) {
					b.ReportAllocs()
					if err := contender.Run(b.N); err != nil {
						b.Fatal(err)
					}
				})
			}
		})
	}
}

// BenchmarkWakeup wakes a sleeping topology or goroutine in each iteration.
func BenchmarkWakeup(b *testing.B) {
	for name, latency := range map[string]suite.Latency{"topogen": suite.TopologyLatency, "channel": suite.ChannelLatency} {
		b.Run(name, func(b *testing.B) {
			nanos, err := latency(b.N)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(0, "ns/op") // this is mostly the pauses
			b.ReportMetric(measure.Percentile(nanos, 0.5), "p50-ns")
			b.ReportMetric(measure.Percentile(nanos, 0.99), "p99-ns")
		})
	}
}

// BenchmarkFairness measures the delays of everything else beside busy workers, for a second in each iteration.
func BenchmarkFairness(b *testing.B) {
	for name, fairness := range map[string]suite.Fairness{"topogen": suite.TopologyFairness, "channels": suite.ChannelFairness} {
		b.Run(name, func(b *testing.B) {
			var nanos [peers.FairKinds][]float64
			for range b.N {
				delays, err := fairness()
				if err != nil {
					b.Fatal(err)
				}
				for kind := range nanos {
					nanos[kind] = append(nanos[kind], delays.Of(kind)...)
				}
			}
			b.ReportMetric(0, "ns/op") // this is the time of a measurement
			for kind, unit := range []string{"send", "serve", "blocking", "health", "timer"} {
				for name, p := range map[string]float64{"p50": 0.5, "p99": 0.99, "max": 1} {
					b.ReportMetric(measure.Percentile(nanos[kind], p)/1e3, unit+"-"+name+"-µs")
				}
			}
		})
	}
}

// figure reports the median of b.N calls of the function figure.
func figure(b *testing.B, unit string, figure func() (float64, error)) {
	var v []float64
	for range b.N {
		x, err := figure()
		if err != nil {
			b.Fatal(err)
		}
		v = append(v, x)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(measure.Median(v), unit)
}

// BenchmarkIdle measures the processor time of a topology that waits.
func BenchmarkIdle(b *testing.B) { figure(b, "CPU-share", suite.IdleShare) }

// BenchmarkSleepers measures the throughput that is left while other handlers sleep.
func BenchmarkSleepers(b *testing.B) { figure(b, "kept-share", suite.SleepersShare) }

// BenchmarkCrowd measures the memory of an instance before its first message.
func BenchmarkCrowd(b *testing.B) { figure(b, "B/instance", suite.CrowdBytes) }

// BenchmarkMesh measures the memory of 1,000 instances connected to 1,000.
func BenchmarkMesh(b *testing.B) {
	figure(b, "B", func() (float64, error) {
		bytes, err := suite.MeshBytes()
		return float64(bytes), err
	})
}

// BenchmarkStall measures the heap while a consumer stalls.
func BenchmarkStall(b *testing.B) {
	for _, shape := range stall.Shapes {
		b.Run(shape.Name, func(b *testing.B) {
			figure(b, "of-capacities", func() (float64, error) {
				times, _, err := suite.StalledHeap(shape)
				return times, err
			})
		})
	}
}

// BenchmarkBuild measures the command, including child processes.
func BenchmarkBuild(b *testing.B) {
	tools, err := suite.MakeTools()
	if err != nil {
		b.Fatal(err)
	}
	defer tools.Remove()
	for _, c := range tools.Commands() {
		b.Run(c.Name, func(b *testing.B) {
			if c.Prepare != nil {
				if err := c.Prepare(); err != nil {
					b.Fatal(err)
				}
			}
			var most uint64
			for b.Loop() {
				usage, err := c.Run()
				if err != nil {
					b.Fatal(err)
				}
				most = max(most, usage.Bytes)
			}
			b.ReportMetric(float64(most)/(1<<20), "MB-max")
		})
	}
}
