package piper_test

import (
	"runtime"
	"strconv"
	"testing"

	"github.com/topogen/topogen/runtime/internal/race"
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/queue"
	"github.com/topogen/topogen/runtime/topo"
)

// stage is an instance of a row of processors, each of which sends its messages to the next one.
// The first one makes them.
type stage[M any] struct {
	unit  piper.Unit
	out   piper.Out
	index int
	to    *stage[M]
	link  *piper.LinkOf[queue.Edge[M]]
	left  int // messages that the first stage has not made
	got   int
	pings func() // called in Ping of the first stage; may be nil
}

const rowCapacity = 4

func (s *stage[M]) Link(_, _ int) {
	s.link = new(piper.LinkOf[queue.Edge[M]])
	to, in := s.to, &s.link.Queue
	s.out.Join(&to.unit, s.link, s.index, rowCapacity, func(budget int) (n int, err error) {
		for batch := queue.Peek(in, budget); n < len(batch) && !to.unit.MustYield(); n++ {
			to.got++
			to.send(batch[n])
		}
		in.Head.Release(n)
		return n, nil
	})
}

func (s *stage[M]) send(m M) {
	if s.to == nil {
		return
	}
	if s.link == nil {
		s.out.Link(s.index+1, 0)
	}
	queue.Put(&s.link.Queue, m)
}

func (s *stage[M]) Ping(budget int) (n int, err error) {
	if s.pings != nil {
		s.pings()
	}
	for ; n < budget && !s.unit.MustYield(); n++ {
		if s.left == 0 {
			return n, topo.Done
		}
		s.left--
		var m M
		s.send(m)
	}
	return n, nil
}

// row runs a row of stages, and checks that each of them gets all messages.
func row[M any](t *testing.T, stages, messages int, pings func(), options ...piper.Option) {
	t.Helper()
	all := make([]stage[M], stages)
	spec := piper.Spec{Name: "row", Batch: 256}
	for i := range all {
		s := &all[i]
		s.index = i
		spec.Processors = append(spec.Processors, piper.Processor{
			Name: "stage" + strconv.Itoa(i), Group: i, Instances: 1, Ping: i == 0,
			Instance: func(topo.Instance, bool) (piper.Parts, error) {
				return piper.Parts{Cell: s, Unit: &s.unit, Out: &s.out}, nil
			},
		})
		if i+1 < stages {
			s.to = &all[i+1]
			spec.Edges = append(spec.Edges, piper.Edge{From: i, To: i + 1, Message: "M", Capacity: rowCapacity})
		}
	}
	all[0].left, all[0].pings = messages, pings
	p, err := piper.New(spec, options...)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range all[1:] {
		if got := all[i+1].got; got != messages {
			t.Fatalf("stage %d of %d got %d messages, want %d", i+1, stages, got, messages)
		}
	}
}

// TestManyProcessors runs a row of 65,536 processors.
func TestManyProcessors(t *testing.T) {
	processors := 1 << 16
	if race.Enabled {
		processors /= 16
	}
	row[int](t, processors, 3, nil)
}

// TestFewAndManyWorkers runs a row on one worker and on 256.
func TestFewAndManyWorkers(t *testing.T) {
	for _, workers := range []int{1, 256} {
		row[int](t, 1000, 50, nil, piper.Workers(workers))
	}
}

// TestSmallAndLargeMessages passes on messages of no bytes and of 1 MB.
func TestSmallAndLargeMessages(t *testing.T) {
	row[struct{}](t, 3, 5000, nil)
	row[[1 << 20]byte](t, 3, 20, nil)
}

// TestTheNumberOfThreadsChangesDuringARun changes GOMAXPROCS at each Ping.
func TestTheNumberOfThreadsChangesDuringARun(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	pings := 0
	row[int](t, 8, 500, func() {
		pings++
		runtime.GOMAXPROCS(1 + pings%4)
	}, piper.Workers(3))
}
