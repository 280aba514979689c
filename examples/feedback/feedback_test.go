package main

import (
	"slices"
	"testing"

	"github.com/topogen/topogen/runtime/topo"
)

// TestSurfersFollowLinksUntilBored tests one processor without a topology: a recorder
// collects its messages.
func TestSurfersFollowLinksUntilBored(t *testing.T) {
	const page, surfers = 7, 1000
	var pages Pages
	r := RecordPages()
	for number := range surfers {
		s := surfer(number)
		s.Page = page
		pages.ReceiveSurfer(s, r.Sender())
	}
	for _, s := range r.Surfer {
		if !slices.Contains(linksOf(page), s.Page) {
			t.Errorf("a surfer went to page %d, want one of %v", s.Page, linksOf(page))
		}
	}
	if left := surfers - len(r.Surfer); left < 100 || left > 200 {
		t.Errorf("%d of %d were bored, want about 150", left, surfers)
	}
	pages.Finish(r.Sender())
	if want := []Visits{{page, surfers}}; !slices.Equal(r.Visits, want) {
		t.Errorf("reported %v, want %v", r.Visits, want)
	}
}

// TestEveryOrderGivesTheSameVisits runs the topology in one goroutine: the visits do not
// depend on the order in which surfers move.
func TestEveryOrderGivesTheSameVisits(t *testing.T) {
	const surfers = 1000
	want := direct(surfers)
	for seed := range uint64(3) {
		topology := newTopology(t, surfers)
		if err := topology.Stepper(seed).Run(); err != nil {
			t.Fatal(err)
		}
		if topology.Ranking(0).visits != want {
			t.Errorf("seed %d: the visits differ from a direct computation", seed)
		}
	}
}

// TestRun runs the topology on real workers.
func TestRun(t *testing.T) {
	const surfers = 10_000
	topology := newTopology(t, surfers)
	if err := topology.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if topology.Ranking(0).visits != direct(surfers) {
		t.Error("the visits differ from a direct computation")
	}
}

func newTopology(t *testing.T, surfers int) *Topology {
	t.Helper()
	topology, err := New(Processors{
		Start: func(topo.Instance) (*Start, error) { return &Start{surfers: surfers}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return topology
}
