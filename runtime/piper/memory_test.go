package piper_test

import (
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/topogen/topogen/runtime/internal/race"
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/topo"
)

// heap is the size of the heap after a garbage collection.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // frees what the pools released in the first collection
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

const (
	heapCapacity = 16_384
	heapSlack    = 64 << 10 // stacks and other objects of goroutines
)

// TestMemoryWithAStalledConsumer checks that the heap stays within capacities x message
// size + 20 %, for every policy of a full queue, however long the consumer is stalled.
func TestMemoryWithAStalledConsumer(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector has a heap of its own")
	}
	for name, s := range map[string]*stalled{
		"block":       {each: 1, atMost: heapCapacity},
		"burst":       {each: 1000, atMost: heapCapacity + 1000},
		"drop-oldest": {full: dropOldest, each: 1, atMost: heapCapacity},
		"drop-newest": {full: dropNewest, each: 1, atMost: heapCapacity},
		"fail":        {full: fail, each: 1, atMost: heapCapacity},
		"cycle":       {within: true, each: 1, atMost: 3 * heapCapacity},
	} {
		t.Run(name, s.test)
	}
}

// stalled is a topology whose consumer is stalled.
type stalled struct {
	full   full
	within bool // the consumer replies, so both processors are in a cycle
	each   int  // number of messages per call
	atMost int  // maximum number of messages in the queues

	calls atomic.Int64
	stop  atomic.Bool
	stuck chan struct{}
}

// feed sends until it is paused, or without end.
func (s *stalled) feed(c *cell) error {
	if s.stop.Load() {
		return topo.Done
	}
	s.calls.Add(1)
	for range s.each {
		if err := c.send(0, 0, message{}); err != nil && !errors.Is(err, topo.ErrFull) {
			return err
		}
	}
	return nil
}

func (s *stalled) consume(*cell, *message) error {
	<-s.stuck
	return nil
}

func (s *stalled) build(t *testing.T) *topology {
	procs := []proc{{ping: s.feed}, {blocking: true, receive: s.consume}}
	edges := []edge{{from: 0, to: 1, capacity: heapCapacity, full: s.full}}
	if s.within {
		procs = append(procs, procs[1])
		procs[1] = proc{receive: func(c *cell, m *message) error { return c.send(1, 0, *m) }}
		edges = append(edges, edge{from: 1, to: 2, capacity: heapCapacity}, edge{from: 2, to: 1, capacity: heapCapacity})
	}
	return build(t, procs, edges, piper.Workers(1))
}

func (s *stalled) test(t *testing.T) {
	s.stuck = make(chan struct{})
	top := s.build(t)
	before := heap()
	result := top.start(t.Context())
	first := top.graph().Edge(0)
	until(t, func() bool {
		if s.full == block { // a sender continues when the queue is at most half full
			return first.Len() > heapCapacity/2 && piper.Idle(top.pool)
		}
		return first.Len() >= heapCapacity && s.calls.Load() > 10*heapCapacity
	})
	grown := heap() - before
	most := int64(s.atMost)*int64(unsafe.Sizeof(message{}))*12/10 + heapSlack
	t.Logf("%d bytes for %d messages of %d bytes", grown, s.atMost, unsafe.Sizeof(message{}))
	if grown > most {
		t.Errorf("the heap has grown by %d bytes, want at most %d", grown, most)
	}
	s.stop.Store(true)
	close(s.stuck)
	if err := top.result(t, result); err != nil {
		t.Fatal(err)
	}
	top.check(t, true)
}

// idler is an instance without methods that the pool would call, to measure the memory
// of the runtime itself.
type idler struct {
	piper.Unit
	out piper.Out
}

// idlers makes a pool of processors with n instances each, connected by an edge.
func idlers(t *testing.T, processors, n int) (*piper.Pool, *piper.External) {
	t.Helper()
	spec := piper.Spec{Batch: 256, Processors: []piper.Processor{{Name: "door", External: true}}}
	for i := range processors {
		spec.Processors = append(spec.Processors, piper.Processor{Name: "idle", Group: i + 1})
		spec.Edges = append(spec.Edges, piper.Edge{From: i, To: i + 1, Message: "M", Capacity: 1024})
	}
	p, err := piper.New(spec, piper.Workers(2))
	if err != nil {
		t.Fatal(err)
	}
	for i := range processors {
		cells := make([]idler, n)
		for j := range cells {
			p.Adopt(i+1, &cells[j], &cells[j].Unit, &cells[j].out)
		}
	}
	return p, p.External(0)
}

// idleHeap is how much the heap grows for idle instances that run.
func idleHeap(t *testing.T, processors, n int) int64 {
	t.Helper()
	before := heap()
	p, door := idlers(t, processors, n)
	result := make(chan error, 1)
	go func() { result <- p.Run(t.Context()) }()
	until(t, func() bool { return piper.Idle(p) })
	grown := heap() - before
	door.Close()
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	return grown
}

func TestAHundredThousandIdleInstances(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector has a heap of its own")
	}
	const n = 100_000
	each := float64(idleHeap(t, 1, n)) / n
	t.Logf("%.0f bytes an instance", each)
	if each > 256 {
		t.Errorf("an idle instance takes %.0f bytes", each)
	}
}

func TestAThousandByAThousandIdlePairs(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector has a heap of its own")
	}
	grown := idleHeap(t, 2, 1000)
	t.Logf("%d bytes", grown)
	if grown > 1<<20 {
		t.Errorf("2,000 instances and the edge between them take %d bytes", grown)
	}
}
