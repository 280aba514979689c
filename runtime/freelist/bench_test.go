package freelist

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"runtime/metrics"
	"slices"
	"sync"
	"testing"
	"time"
)

// kept prevents that a block is optimized away.
var kept []byte

// source is a way to allocate and free blocks.
type source struct {
	name string
	get  func(n int) []byte
	put  func(b []byte)
}

// sources returns allocators, make, and a sync.Pool per power of two, as programs use
// them.
func sources() []source {
	var pools [32]sync.Pool
	level := func(n int) int { return bits.Len(uint(n - 1)) }
	return []source{
		allocator("freelist"),
		allocator("dirty", Dirty()),
		{"make", func(n int) []byte { return make([]byte, n) }, func([]byte) {}},
		{"sync.Pool",
			func(n int) []byte {
				l := level(n)
				if p, ok := pools[l].Get().(*[]byte); ok {
					return (*p)[:n]
				}
				return make([]byte, n, 1<<l)
			},
			func(b []byte) { pools[level(cap(b))].Put(&b) }},
	}
}

func allocator(name string, options ...Option) source {
	a := New(options...)
	return source{name, a.Allocate, func(b []byte) {
		if err := a.Free(b); err != nil {
			panic(err)
		}
	}}
}

// BenchmarkBlocks prints how many times longer make and sync.Pool take, including the
// collector's work. The figures are medians of alternating runs, because the load of the
// computer varies.
func BenchmarkBlocks(b *testing.B) {
	const calls = 4000
	for _, load := range []struct {
		name string
		run  func(s source, size int, live [][]byte)
	}{
		{"at once", func(s source, size int, _ [][]byte) {
			for range calls {
				kept = s.get(size)
				s.put(kept)
			}
		}},
		{"1000 alive", func(s source, size int, live [][]byte) {
			r := rand.New(rand.NewPCG(1, 2))
			for range calls {
				at := r.IntN(len(live))
				if live[at] != nil {
					s.put(live[at])
				}
				live[at] = s.get(size/2 + r.IntN(size*3/2))
			}
		}},
		{"two goroutines at once", func(s source, size int, _ [][]byte) {
			both(func() {
				for range calls / 2 {
					b := s.get(size)
					b[0]++
					s.put(b)
				}
			})
		}},
		{"handed over 64 at a time", func(s source, size int, _ [][]byte) {
			over := make(chan [][]byte, 8)
			var taker sync.WaitGroup
			taker.Go(func() {
				for batch := range over {
					for _, b := range batch {
						s.put(b)
					}
				}
			})
			for range calls / 64 {
				batch := make([][]byte, 64)
				for i := range batch {
					batch[i] = s.get(size)
				}
				over <- batch
			}
			close(over)
			taker.Wait()
		}},
	} {
		for _, size := range []int{64, 1 << 10, 16 << 10, 64 << 10} {
			b.Run(fmt.Sprintf("%s/%d", load.name, size), func(b *testing.B) {
				all := sources()
				live := make([][][]byte, len(all))
				took := make([][]float64, len(all))
				for i := range all {
					live[i] = make([][]byte, 1000)
				}
				for b.Loop() {
					for i, s := range all {
						begun := time.Now()
						load.run(s, size, live[i])
						took[i] = append(took[i], float64(time.Since(begun).Nanoseconds())/calls)
					}
				}
				report(b, all, took)
			})
		}
	}
}

func both(do func()) {
	var wait sync.WaitGroup
	wait.Go(do)
	wait.Go(do)
	wait.Wait()
}

// report prints the medians; all but the first are multiples of the first.
func report(b *testing.B, all []source, took [][]float64) {
	b.ReportMetric(0, "ns/op")
	for i, s := range all {
		b.ReportMetric(median(took[i]), s.name+"-ns")
		if i > 1 {
			b.ReportMetric(median(took[i])/median(took[0]), "times-"+s.name)
		}
	}
}

func median(of []float64) float64 {
	slices.Sort(of)
	return of[len(of)/2]
}

// BenchmarkCollector replaces some of a million live blocks of some hundred bytes in
// random order. It measures a collection, the replacement of a block, and the collector's
// work in that time.
func BenchmarkCollector(b *testing.B) {
	const blocks, replaced = 1_000_000, 1_000_000
	all := sources()[:3]
	collection, replacing, cpu := make([][]float64, 3), make([][]float64, 3), make([][]float64, 3)
	for b.Loop() {
		for i := range all {
			s := sources()[i]
			live := make([][]byte, blocks)
			r := rand.New(rand.NewPCG(1, 2))
			size := func() int { return 64 + r.IntN(500) }
			for at := range live {
				live[at] = s.get(size())
			}
			runtime.GC()
			before := collectorSeconds()
			runtime.GC()
			collection[i] = append(collection[i], 1e3*(collectorSeconds()-before))
			before = collectorSeconds()
			begun := time.Now()
			for range replaced {
				at := r.IntN(blocks)
				s.put(live[at])
				live[at] = s.get(size())
			}
			replacing[i] = append(replacing[i], float64(time.Since(begun).Nanoseconds())/replaced)
			runtime.GC() // so that its cost is counted
			cpu[i] = append(cpu[i], 1e9*(collectorSeconds()-before)/replaced)
			kept = live[0]
		}
	}
	b.ReportMetric(0, "ns/op")
	for i, s := range all {
		b.ReportMetric(median(collection[i]), s.name+"-ms-collection")
		b.ReportMetric(median(replacing[i]), s.name+"-ns-replaced")
		b.ReportMetric(median(cpu[i]), s.name+"-ns-collector")
	}
}

// collectorSeconds is the processor time that the collector has used.
func collectorSeconds() float64 {
	sample := []metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}}
	metrics.Read(sample)
	return sample[0].Value.Float64()
}
