package nodetests_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/topogen/topogen/generated_test/clustertest"
	"github.com/topogen/topogen/generated_test/machineevents"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/topo"
	"github.com/topogen/topogen/runtime/transport"
)

// eventsRun runs a node until stop is called or the test ends.
func eventsRun(t *testing.T, top *machineevents.Topology) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- top.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// eventsNode makes one of three nodes on loopback.
func eventsNode(t *testing.T, h *heard, change func(*raft.Config), till string) *machineevents.Topology {
	t.Helper()
	processors := h.processors()
	processors.Ledger = func(topo.Instance) (*machineevents.Ledger, error) { return machineevents.NewLedger(change) }
	processors.Till = func(topo.Instance) (*machineevents.Till, error) {
		return machineevents.NewTill(func(c *raft.Config) { c.Dir = till })
	}
	top, err := machineevents.New(processors)
	if err != nil {
		t.Fatal(err)
	}
	return top
}

// eventually waits until a condition holds.
func (h *heard) eventually(t *testing.T, holds func() bool) {
	t.Helper()
	eventually(t, func() (now bool) {
		h.with(func() { now = holds() })
		return now
	})
}

// TestMachineEventsThreeNodes checks that each of three nodes gets the same updates at the same positions,
// and the same leader; after the end of the leader, the new leader.
func TestMachineEventsThreeNodes(t *testing.T) {
	t.Parallel()
	clustertest.Bubble(t, func(t *testing.T) {
		peers, dir, memory := newPeers(t), t.TempDir(), transport.NewMemory(transport.MemoryOptions{})
		tops, stops, all := map[string]*machineevents.Topology{}, map[string]func(){}, map[string]*heard{}
		for name := range peers {
			h := new(heard)
			all[name] = h
			tops[name] = eventsNode(t, h, func(c *raft.Config) { c.Node, c.Peers, c.Dir, c.Transport = name, peers, dir, joined(t, memory, name) }, dir+"/till-"+name)
			stops[name] = eventsRun(t, tops[name])
		}
		leader := func(than uint64) (now machineevents.LedgerLeadership) {
			for name, h := range all {
				h.eventually(t, func() bool {
					l := h.leadership["ledger0"]
					if len(l) == 0 || l[len(l)-1].Leader == "" || l[len(l)-1].Term <= than {
						return false
					}
					now = l[len(l)-1]
					if now.Here != (now.Leader == name) || now.ID == 0 {
						t.Errorf("%s hears of %+v", name, now)
					}
					return true
				})
			}
			return now
		}
		ctx := t.Context()
		const updates = 60
		propose := func(total int) {
			t.Helper()
			for i := range updates {
				for _, top := range tops {
					if _, err := top.Ledger().Propose(ctx, machineevents.Transfer{Account: fmt.Sprint("account", i%7), Cents: 1}); err != nil {
						t.Fatal(err)
					}
					break // one node of the map, in random order
				}
			}
			var first []machineevents.LedgerApplied
			for name, h := range all {
				h.eventually(t, func() bool { return len(h.ledger) >= total })
				if first == nil {
					first = h.ledger
				}
				if !slices.EqualFunc(first, h.ledger, func(a, b machineevents.LedgerApplied) bool {
					return a.Entry == b.Entry && a.Term == b.Term && a.Update == b.Update && a.Value == b.Value
				}) {
					t.Errorf("%s hears of\n%+v, another of\n%+v", name, h.ledger, first)
				}
			}
			has := map[string]int64{}
			for i, m := range first {
				if has[m.Update.Account]++; m.Value != has[m.Update.Account] || m.Since != 0 {
					t.Errorf("update %d is %+v, want %d", i, m, has[m.Update.Account])
				}
			}
		}
		l := leader(0)
		propose(updates)
		if got := tops[l.Leader].Ledger().Status(); got.ID != l.ID || got.Term < l.Term {
			t.Errorf("it hears of %+v, and there is %+v", l, got)
		}
		stops[l.Leader]()
		delete(tops, l.Leader)
		delete(all, l.Leader)
		if next := leader(l.Term); next.Leader == l.Leader {
			t.Errorf("it hears of %+v after %+v", next, l)
		}
		propose(2 * updates)
	})
}

// alone makes a single node with the log of till in a folder.
func alone(t *testing.T, h *heard, dir string) *machineevents.Topology {
	return eventsNode(t, h, func(c *raft.Config) { c.Dir, c.Peers = dir+"/ledger", nil }, dir+"/till")
}

// TestMachineEventsAgain checks that after a restart the events of updates after the newest snapshot are
// sent again.
func TestMachineEventsAgain(t *testing.T) {
	t.Parallel()
	dir, ctx := t.TempDir(), t.Context()
	var snapshot uint64
	for _, want := range []int{2, 4, 2} {
		h := new(heard)
		top := alone(t, h, dir)
		stop := eventsRun(t, top)
		h.eventually(t, func() bool { return len(h.leadership["till0"]) == 1 })
		var last fsm.Result[struct{}]
		for range 2 {
			var err error
			if last, err = top.Till().ProposeResult(ctx, machineevents.Deposit{Of: &machineevents.Transfer{Account: "ann", Cents: 1}}); err != nil {
				t.Fatal(err)
			}
		}
		h.eventually(t, func() bool { return len(h.till) == want })
		for _, m := range h.till {
			if m.Since != snapshot || m.Index <= snapshot || m.Index > last.Index {
				t.Errorf("behind a snapshot at %d it hears of %+v", snapshot, m)
			}
		}
		if want == 4 {
			var err error
			if snapshot, err = top.Till().Snapshot(ctx); err != nil {
				t.Fatal(err)
			}
		}
		stop()
	}
}

// TestMachineEventsStopped checks that a stopped node sends events of all applied updates before it ends,
// also to a receiver with a full queue.
func TestMachineEventsStopped(t *testing.T) {
	t.Parallel()
	h := new(heard)
	top := alone(t, h, t.TempDir())
	stop := eventsRun(t, top)
	h.eventually(t, func() bool { return len(h.leadership["till0"]) == 1 })
	const updates = 2000 // more than a queue holds
	h.with(func() {
		for range updates {
			if _, err := top.Till().Propose(t.Context(), machineevents.Deposit{Of: &machineevents.Transfer{Account: "ann", Cents: 1}}); err != nil {
				t.Fatal(err)
			}
		}
	})
	stop()
	if len(h.till) != updates {
		t.Errorf("it hears of %d", len(h.till))
	}
}

// slowly is more than the buffer of 65,536 events and the queue.
const slowly = 70_000

// deposit proposes updates that are numbered from first.
func deposit(t *testing.T, top *machineevents.Topology, first, end int64) {
	t.Helper()
	for n := first; n < end; n++ {
		if _, err := top.Till().Propose(t.Context(), machineevents.Deposit{Of: &machineevents.Transfer{Account: "ann", Cents: n}}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestMachineEventsSlow checks that a receiver that handles nothing does not stop the state machine,
// and that it can find the gaps.
func TestMachineEventsSlow(t *testing.T) {
	t.Parallel()
	var h heard
	top, err := machineevents.New(h.processors())
	if err != nil {
		t.Fatal(err)
	}
	s := top.Stepper(1)
	deposit(t, top, 1, slowly)
	quiet(s)
	deposit(t, top, slowly, slowly+1)
	quiet(s)
	s.Stop()
	if err := s.Run(); err != nil {
		t.Error(err)
	}
	h.checkGaps(t, slowly)
}

// TestMachineEventsSlowOnADisk checks the same with a log and several goroutines.
func TestMachineEventsSlowOnADisk(t *testing.T) {
	speed.Landing(t)
	speed.NoRace(t) // 65,000 updates
	t.Parallel()
	h := new(heard)
	top := alone(t, h, t.TempDir())
	stop := eventsRun(t, top)
	h.eventually(t, func() bool { return len(h.leadership["till0"]) == 1 })
	h.with(func() { deposit(t, top, 1, slowly) })
	h.eventually(t, func() bool { return len(h.till) > 65_536 })
	deposit(t, top, slowly, slowly+1)
	h.eventually(t, func() bool { return h.till[len(h.till)-1].Update.Of.Cents == slowly })
	stop()
	h.checkGaps(t, slowly)
}

// checkGaps checks that the events of the till say where others are missing, and that the last
// one has arrived.
func (h *heard) checkGaps(t *testing.T, last int64) {
	t.Helper()
	gaps, before := 0, machineevents.TillApplied{}
	for _, m := range h.till {
		switch missing := m.Update.Of.Cents != before.Update.Cents()+1; {
		case missing && m.Since < before.Index:
			t.Fatalf("after %+v it hears of %+v", before, m)
		case missing:
			gaps++
		case m.Since >= before.Index && m.Since > 0:
			t.Fatalf("nothing is missing between %+v and %+v", before, m)
		}
		before = m
	}
	if gaps == 0 {
		t.Error("nothing is missing")
	}
	if n := before.Update.Cents(); n != last {
		t.Errorf("the last event has the number %d, want %d", n, last)
	}
}
