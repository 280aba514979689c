package tree

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The index types of one topology; another's do not mix with them.
type (
	processorIndex int
	edgeIndex      int
)

// source is a pool that knows who asked.
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

// topology draws processors and edges, timers among them.
func topology(t *rapid.T) (nodes []Node, arcs []Arc) {
	for i := range rapid.IntRange(1, 12).Draw(t, "processors") {
		nodes = append(nodes, Node{Name: fmt.Sprint("p", i), Instances: rapid.IntRange(0, 5).Draw(t, "instances")})
	}
	for i := range rapid.IntRange(0, 40).Draw(t, "edges") {
		arcs = append(arcs, Arc{
			From:    rapid.IntRange(-1, len(nodes)-1).Draw(t, "from"),
			To:      rapid.IntRange(0, len(nodes)-1).Draw(t, "to"),
			Message: fmt.Sprint("M", i),
		})
	}
	return nodes, arcs
}

// TestTheTreeSaysWhatWasGiven, and incoming, outgoing and connecting edges agree
// with the ends of each.
func TestTheTreeSaysWhatWasGiven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, arcs := topology(t)
		s := new(source)
		tree := New[processorIndex, edgeIndex](nodes, arcs, s)
		if tree.ProcessorsCount() != len(nodes) || tree.EdgesCount() != len(arcs) {
			t.Fatalf("%d processors, %d edges", tree.ProcessorsCount(), tree.EdgesCount())
		}
		for i, n := range nodes {
			checkProcessor(t, tree, processorIndex(i), n)
		}
		for i, a := range arcs {
			checkEdge(t, tree, s, edgeIndex(i), a)
		}
		if _, ok := tree.ProcessorIndex("nobody"); ok {
			t.Fatal("a processor that there is not has an index")
		}
	})
}

func checkProcessor(t *rapid.T, tree *Tree[processorIndex, edgeIndex], i processorIndex, n Node) {
	p := tree.Processor(i)
	if p.Name() != n.Name || p.Instances() != n.Instances || p.Worker(3) != 100*int(i)+3 || p.Busy() != time.Duration(i)*time.Second {
		t.Fatalf("processor %d: %q, %d instances, worker %d, busy %v", i, p.Name(), p.Instances(), p.Worker(3), p.Busy())
	}
	if j, ok := tree.ProcessorIndex(n.Name); j != i || !ok {
		t.Fatalf("%s has index %d, %v", n.Name, j, ok)
	}
	in, out := tree.IncomingEdges(i), tree.OutgoingEdges(i)
	if !slices.IsSorted(in) || !slices.IsSorted(out) {
		t.Fatalf("edges do not ascend: %v, %v", in, out)
	}
	for _, e := range in {
		if tree.Edge(e).To() != i {
			t.Fatalf("edge %d comes in to %d", e, i)
		}
	}
	connecting := 0
	for j := range tree.ProcessorsCount() {
		edges := tree.ConnectingEdges(i, processorIndex(j))
		connecting += len(edges)
		for _, e := range edges {
			if tree.Edge(e).From() != i || tree.Edge(e).To() != processorIndex(j) || !slices.Contains(out, e) {
				t.Fatalf("edge %d connects %d and %d", e, i, j)
			}
		}
	}
	if connecting != len(out) {
		t.Fatalf("%d edges go out, %d connect", len(out), connecting)
	}
	if len(in) > 0 {
		in[0] = -1 // what is returned is the caller's
		if tree.IncomingEdges(i)[0] == -1 {
			t.Fatal("the tree handed out its own")
		}
	}
}

func checkEdge(t *rapid.T, tree *Tree[processorIndex, edgeIndex], s *source, i edgeIndex, a Arc) {
	e := tree.Edge(i)
	if int(e.From()) != a.From || int(e.To()) != a.To || e.Message() != a.Message {
		t.Fatalf("edge %d: %d -> %d: %s", i, e.From(), e.To(), e.Message())
	}
	n := 10 * int(i)
	if e.Len() != n+1 || e.Sent() != uint64(n+2) || e.Received() != uint64(n+3) || e.Dropped() != uint64(n+4) {
		t.Fatalf("edge %d: %d, %d, %d, %d", i, e.Len(), e.Sent(), e.Received(), e.Dropped())
	}
	if !slices.Contains(tree.IncomingEdges(e.To()), i) || a.From >= 0 != (a.From >= 0 && slices.Contains(tree.OutgoingEdges(e.From()), i)) {
		t.Fatalf("edge %d is missing at an end", i)
	}
	if ok, err := e.Deliver(); !ok || err != errSource || s.delivered[len(s.delivered)-1] != int(i) {
		t.Fatalf("Deliver: %v, %v", ok, err)
	}
	if err := tree.Processor(e.To()).Ping(); err != errSource || s.pinged[len(s.pinged)-1] != int(e.To()) {
		t.Fatalf("Ping: %v", err)
	}
}

// TestAnIndexOutsidePanics, as one outside a slice does.
func TestAnIndexOutsidePanics(t *testing.T) {
	tree := New[processorIndex, edgeIndex]([]Node{{Name: "a"}}, nil, new(source))
	for name, call := range map[string]func(){
		"Processor": func() { tree.Processor(1) },
		"Edge":      func() { tree.Edge(0) },
		"Incoming":  func() { tree.IncomingEdges(-1) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("it does not panic")
				}
			}()
			call()
		})
	}
}
