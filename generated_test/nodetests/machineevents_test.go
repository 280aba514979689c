package nodetests_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/topogen/topogen/generated_test/clustertest"
	"github.com/topogen/topogen/generated_test/machineevents"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/topo"
	"github.com/topogen/topogen/runtime/transport"
)

// heard has the events that the processors of a topology received.
type heard struct {
	mu         sync.Mutex
	ledger     []machineevents.LedgerApplied
	stock      []machineevents.StockApplied
	till       []machineevents.TillApplied
	leadership map[string][]machineevents.LedgerLeadership
	boards     map[string]int // balances on the board, by account
}

// with runs f while no event is received.
func (h *heard) with(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
}

// processors has constructors of receivers that record events in h.
func (h *heard) processors(orders ...machineevents.Order) machineevents.Processors {
	h.leadership, h.boards = map[string][]machineevents.LedgerLeadership{}, map[string]int{}
	return machineevents.Processors{
		Clients: func(topo.Instance) (*machineevents.Clients, error) {
			return &machineevents.Clients{Orders: orders}, nil
		},
		Audit: func(topo.Instance) (*machineevents.Audit, error) {
			return &machineevents.Audit{
				Ledger: func(m machineevents.LedgerApplied) { h.with(func() { h.ledger = append(h.ledger, m) }) },
				Stock:  func(m machineevents.StockApplied) { h.with(func() { h.stock = append(h.stock, m) }) },
				Till:   func(m machineevents.TillApplied) { h.with(func() { h.till = append(h.till, m) }) },
				Leadership: func(machine string, l machineevents.LedgerLeadership) {
					h.with(func() {
						machine = fmt.Sprint(machine, l.Instance)
						h.leadership[machine] = append(h.leadership[machine], l)
					})
				},
			}, nil
		},
		Board: func(in topo.Instance) (*machineevents.Board, error) {
			return &machineevents.Board{Index: in.Index, Shown: func(board int, account string, _ int64) {
				h.with(func() { h.boards[account] = board + 1 })
			}}, nil
		},
	}
}

// TestMachineEventsStepByStep checks, without a log, with a log and with a raft group, that events of
// applied updates come in order with their values, and that the leader is reported once.
func TestMachineEventsStepByStep(t *testing.T) {
	for seed := range uint64(5) {
		var h heard
		orders := []machineevents.Order{{Transfer: machineevents.Transfer{Account: "ann", Cents: 300}}, {Transfer: machineevents.Transfer{Account: "ann", Cents: -500}}, {Transfer: machineevents.Transfer{Account: "bob", Cents: 50}}, {Transfer: machineevents.Transfer{Account: "ann", Cents: -100}}}
		top, err := machineevents.New(h.processors(orders...))
		if err != nil {
			t.Fatal(err)
		}
		s, ctx := top.Stepper(seed), t.Context()
		for i, account := range []string{"ann", "bob", "ann"} {
			of := &machineevents.Transfer{Account: account, Cents: int64(i) + 1}
			if _, err := top.Till().Propose(ctx, machineevents.Deposit{Of: of}); err != nil {
				t.Error(err)
			}
			of.Cents = -1 // after the proposal, the update belongs to the proposer again
			if _, err := top.Stock().Propose(ctx, machineevents.Transfer{Account: account, Cents: 5}); err != nil {
				t.Error(err)
			}
		}
		if _, err := top.Stock().Propose(ctx, machineevents.Transfer{Account: "ann", Cents: -100}); !errors.Is(err, machineevents.ErrNoMoney) {
			t.Error(err)
		}
		quiet(s)
		s.Stop()
		if err := s.Run(); err != nil {
			t.Fatal(err)
		}
		h.checkLedger(t, []int64{300, 50, 200})
		h.checkOthers(t)
		for _, machine := range []string{"ledger0", "stock0", "stock1", "till0"} {
			l := h.leadership[machine]
			if len(l) != 1 || !l[0].Here || l[0].Term != 1 || l[0].Leader != "alone" || l[0].ID == 0 {
				t.Errorf("of %s it hears %+v", machine, l)
			}
		}
	}
}

// quiet steps until there is no more work.
func quiet(s *pool.Stepper) {
	for s.Step() {
	}
}

// checkLedger checks the updates of ann and bob by the remaining balances.
func (h *heard) checkLedger(t *testing.T, left []int64) {
	t.Helper()
	var got []int64
	for i, m := range h.ledger {
		got = append(got, m.Value)
		if i > 0 && m.Index <= h.ledger[i-1].Index || m.Since != 0 || m.Term == 0 || m.Time == 0 || m.Instance != 0 {
			t.Errorf("after %+v it hears %+v", h.ledger[max(0, i-1)], m)
		}
	}
	if !slices.Equal(got, left) {
		t.Errorf("it hears of %v, want %v", got, left)
	}
	if len(h.boards) != 2 || h.boards["ann"] == 0 || h.boards["bob"] == 0 {
		t.Errorf("the boards show %v", h.boards)
	}
}

func (h *heard) checkOthers(t *testing.T) {
	t.Helper()
	if len(h.till) != 3 || len(h.stock) != 3 {
		t.Fatalf("it hears of %d and %d", len(h.till), len(h.stock))
	}
	for i, m := range h.till {
		if m.Update.Of.Cents != int64(i)+1 || m.Since != 0 || m.Index == 0 {
			t.Errorf("the till's update %d is %+v", i, m)
		}
	}
	indices := map[int]uint64{}
	for _, m := range h.stock {
		indices[m.Instance]++
		if m.Index != indices[m.Instance] || m.Value != 5*int64(m.Index) || m.Since != 0 || m.Term != 0 {
			t.Errorf("the stock's update is %+v", m)
		}
	}
}

// TestMachineEventsFull checks that after dropped events the next event reports the gap.
func TestMachineEventsFull(t *testing.T) {
	var h heard
	top, err := machineevents.New(h.processors())
	if err != nil {
		t.Fatal(err)
	}
	s, ctx := top.Stepper(1), t.Context()
	propose := func(n int) {
		for range n {
			if _, err := top.Stock().Propose(ctx, machineevents.Transfer{Account: "ann", Cents: 1}); err != nil {
				t.Fatal(err)
			}
		}
	}
	propose(10)
	quiet(s)
	if n := len(h.stock); n != 4 { // the capacity
		t.Fatalf("%d of 10 events arrived", n)
	}
	propose(1)
	quiet(s)
	if last := h.stock[len(h.stock)-1]; last.Index != 11 || last.Since != 10 {
		t.Errorf("the next is %+v", last)
	}
	s.Stop()
	if err := s.Run(); err != nil {
		t.Error(err)
	}
}

// TestMachineEventsTheRest checks that events of all applied updates are sent before the end.
func TestMachineEventsTheRest(t *testing.T) {
	var h heard
	top, err := machineevents.New(h.processors())
	if err != nil {
		t.Fatal(err)
	}
	s := top.Stepper(1)
	const updates = 1000 // more than one turn sends
	for range updates {
		if _, err := top.Till().Propose(t.Context(), machineevents.Deposit{Of: &machineevents.Transfer{Account: "ann", Cents: 1}}); err != nil {
			t.Fatal(err)
		}
	}
	s.Stop()
	if err := s.Run(); err != nil || len(h.till) != updates || len(h.leadership["till0"]) != 1 {
		t.Errorf("it hears of %d of %d, %v", len(h.till), updates, err)
	}
}

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
