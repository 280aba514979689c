package graph

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/topogen/topogen/internal/test/speed"
)

// The index types of one topology. The compiler rejects those of another topology.
type (
	processorIndex int
	edgeIndex      int
)

// source is a pool that records its calls to Deliver and Ping.
type source struct{ delivered, pinged []int }

var errSource = errors.New("from the source")

func (s *source) EdgeLen(e int) int                  { return 10*e + 1 }
func (s *source) EdgeSent(e int) uint64              { return uint64(10*e + 2) }
func (s *source) EdgeReceived(e int) uint64          { return uint64(10*e + 3) }
func (s *source) EdgeDropped(e int) uint64           { return uint64(10*e + 4) }
func (s *source) WorkerOf(processor, i int) int      { return 100*processor + i }
func (s *source) BusyOf(processor int) time.Duration { return time.Duration(processor) * time.Second }

func (s *source) Deliver(e int) (bool, error) {
	s.delivered = append(s.delivered, e)
	return true, errSource
}

func (s *source) Ping(processor int) error {
	s.pinged = append(s.pinged, processor)
	return errSource
}

// topology draws processors and edges, including timers.
func topology(t *rapid.T) (processors []Processor, edges []Edge) {
	for i := range rapid.IntRange(1, 12).Draw(t, "processors") {
		processors = append(processors, Processor{Name: fmt.Sprint("p", i), Instances: rapid.IntRange(0, 5).Draw(t, "instances")})
	}
	for i := range rapid.IntRange(0, 40).Draw(t, "edges") {
		edges = append(edges, Edge{
			From:    rapid.IntRange(-1, len(processors)-1).Draw(t, "from"),
			To:      rapid.IntRange(0, len(processors)-1).Draw(t, "to"),
			Message: fmt.Sprint("M", i),
		})
	}
	return processors, edges
}

// TestGraphShowsItsTopology also checks that the incoming, outgoing and connecting
// edges agree with the ends of each edge.
func TestGraphShowsItsTopology(t *testing.T) {
	speed.Checks(t, 100, 100, 1000)
	rapid.Check(t, func(t *rapid.T) {
		processors, edges := topology(t)
		s := new(source)
		g := New[processorIndex, edgeIndex](processors, edges, s)
		if g.ProcessorsCount() != len(processors) || g.EdgesCount() != len(edges) {
			t.Fatalf("%d processors, %d edges", g.ProcessorsCount(), g.EdgesCount())
		}
		for i, p := range processors {
			checkProcessor(t, g, processorIndex(i), p)
		}
		for i, e := range edges {
			checkEdge(t, g, s, edgeIndex(i), e)
		}
		if _, ok := g.ProcessorIndex("unknown"); ok {
			t.Fatal("an unknown processor has an index")
		}
	})
}

func checkProcessor(t *rapid.T, g *Graph[processorIndex, edgeIndex], i processorIndex, want Processor) {
	p := g.Processor(i)
	if p.Name() != want.Name || p.Instances() != want.Instances || p.Worker(3) != 100*int(i)+3 || p.Busy() != time.Duration(i)*time.Second {
		t.Fatalf("processor %d: %q, %d instances, worker %d, busy %v", i, p.Name(), p.Instances(), p.Worker(3), p.Busy())
	}
	if j, ok := g.ProcessorIndex(want.Name); j != i || !ok {
		t.Fatalf("%s has index %d, %v", want.Name, j, ok)
	}
	in, out := g.IncomingEdges(i), g.OutgoingEdges(i)
	if !slices.IsSorted(in) || !slices.IsSorted(out) {
		t.Fatalf("edges are not in ascending order: %v, %v", in, out)
	}
	for _, e := range in {
		if g.Edge(e).To() != i {
			t.Fatalf("edge %d is listed as incoming at processor %d", e, i)
		}
	}
	connecting := 0
	for j := range g.ProcessorsCount() {
		edges := g.ConnectingEdges(i, processorIndex(j))
		connecting += len(edges)
		for _, e := range edges {
			if g.Edge(e).From() != i || g.Edge(e).To() != processorIndex(j) || !slices.Contains(out, e) {
				t.Fatalf("edge %d is listed as connecting %d and %d", e, i, j)
			}
		}
	}
	if connecting != len(out) {
		t.Fatalf("%d edges are outgoing, %d are connecting", len(out), connecting)
	}
	if len(in) > 0 {
		in[0] = -1 // The caller owns the returned slice.
		if g.IncomingEdges(i)[0] == -1 {
			t.Fatal("IncomingEdges returned the slice of the graph, want a copy")
		}
	}
}

func checkEdge(t *rapid.T, g *Graph[processorIndex, edgeIndex], s *source, i edgeIndex, want Edge) {
	e := g.Edge(i)
	if int(e.From()) != want.From || int(e.To()) != want.To || e.Message() != want.Message {
		t.Fatalf("edge %d: %d -> %d: %s", i, e.From(), e.To(), e.Message())
	}
	n := 10 * int(i)
	if e.Len() != n+1 || e.Sent() != uint64(n+2) || e.Received() != uint64(n+3) || e.Dropped() != uint64(n+4) {
		t.Fatalf("edge %d: %d, %d, %d, %d", i, e.Len(), e.Sent(), e.Received(), e.Dropped())
	}
	if !slices.Contains(g.IncomingEdges(e.To()), i) || want.From >= 0 != (want.From >= 0 && slices.Contains(g.OutgoingEdges(e.From()), i)) {
		t.Fatalf("edge %d is missing at one of its ends", i)
	}
	if ok, err := e.Deliver(); !ok || err != errSource || s.delivered[len(s.delivered)-1] != int(i) {
		t.Fatalf("Deliver: %v, %v", ok, err)
	}
	if err := g.Processor(e.To()).Ping(); err != errSource || s.pinged[len(s.pinged)-1] != int(e.To()) {
		t.Fatalf("Ping: %v", err)
	}
}

// TestAnIndexOutsidePanics checks that an index out of range panics.
func TestAnIndexOutsidePanics(t *testing.T) {
	g := New[processorIndex, edgeIndex]([]Processor{{Name: "a"}}, nil, new(source))
	for name, call := range map[string]func(){
		"Processor": func() { g.Processor(1) },
		"Edge":      func() { g.Edge(0) },
		"Incoming":  func() { g.IncomingEdges(-1) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("an index out of range does not panic")
				}
			}()
			call()
		})
	}
}
