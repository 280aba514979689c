package stall

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/topo"
)

// Shape is one of the chains of the topology.
type Shape struct {
	Name               string
	Edges              []EdgeIndex // the edges that carry messages
	SentBeyondCapacity int         // messages that one call may send beyond a capacity

	source ProcessorIndex
}

// Capacity is the capacity of each edge in messages, MessageSize the size of a message in
// bytes.
const (
	Capacity    = 1024
	MessageSize = 64
)

// Shapes lists all shapes.
var Shapes = []Shape{
	{"block", []EdgeIndex{EdgeWaitSourceWaitSinkMessage}, 0, ProcessorWaitSource},
	{"drop-oldest", []EdgeIndex{EdgeOldestSourceOldestSinkMessage}, 0, ProcessorOldestSource},
	{"drop-newest", []EdgeIndex{EdgeNewestSourceNewestSinkMessage}, 0, ProcessorNewestSource},
	{"fail", []EdgeIndex{EdgeFailSourceFailSinkMessage}, 0, ProcessorFailSource},
	{"inside a cycle", []EdgeIndex{EdgeRingSourceRingForwardMessage, EdgeRingForwardRingSinkMessage, EdgeRingSinkRingForwardMessage}, 0, ProcessorRingSource},
	{"a pair that replies", []EdgeIndex{EdgePairSourceAskerMessage, EdgeAskerReplierQuestion, EdgeReplierAskerAnswerForQuestion}, 0, ProcessorPairSource},
	{"one message makes 1,000", []EdgeIndex{EdgeBurstSourceBurstMessage, EdgeBurstBurstSinkMessage}, BurstSize - 1, ProcessorBurstSource},
}

// Phases of a run.
const (
	flowFirst = 10_000    // messages that the consumer handles before it stalls
	sentMost  = 2_000_000 // messages of a source that is never paused
	settled   = 20 * time.Millisecond

	quietLooks = 4
)

// Run lets the consumer of a shape stall. It calls idle when the topology runs and has
// sent no messages. It calls full when the queues do not change any more. Then it drains
// the topology.
func (s Shape) Run(idle func(), full func(held int), options ...pool.Option) error {
	release := make(chan struct{})
	var start, stop atomic.Bool
	stall := Stall{after: flowFirst, release: release}
	source := func(p ProcessorIndex) func(topo.Instance) (*Source, error) {
		return func(topo.Instance) (*Source, error) {
			if p == s.source {
				return &Source{left: sentMost, start: &start, stop: &stop}, nil
			}
			return &Source{start: &start, stop: &start}, nil // ends before it sends a message
		}
	}
	sink := func(topo.Instance) (*Sink, error) { return &Sink{stall}, nil }
	topology, err := New(Processors{
		WaitSource: source(ProcessorWaitSource), WaitSink: sink,
		OldestSource: source(ProcessorOldestSource), OldestSink: sink,
		NewestSource: source(ProcessorNewestSource), NewestSink: sink,
		FailSource: source(ProcessorFailSource), FailSink: sink,
		RingSource: source(ProcessorRingSource), RingSink: func(topo.Instance) (*Turn, error) { return &Turn{stall}, nil },
		PairSource: source(ProcessorPairSource), Replier: func(topo.Instance) (*Replier, error) { return &Replier{stall}, nil },
		BurstSource: source(ProcessorBurstSource), BurstSink: sink,
	}, options...)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- topology.Run(context.Background()) }()
	time.Sleep(settled) // all sources have returned Idle
	idle()
	start.Store(true)
	s.await(topology)
	full(s.held(topology))
	stop.Store(true)
	close(release)
	return <-ended
}

// await waits until no messages have been sent for a time. The time is longer than that
// for which a handler that hangs keeps its worker from running a source.
func (s Shape) await(t *Topology) {
	for before, quiet := uint64(0), 0; quiet < quietLooks; time.Sleep(settled) {
		var sent uint64
		for _, e := range s.Edges {
			sent += t.Tree().Edge(e).Sent()
		}
		if quiet++; sent != before || sent <= flowFirst {
			before, quiet = sent, 0
		}
	}
}

// held is the number of messages in the shape's queues.
func (s Shape) held(t *Topology) (n int) {
	for _, e := range s.Edges {
		n += t.Tree().Edge(e).Len()
	}
	return n
}
