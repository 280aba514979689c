package nodetests_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/topogen/topogen/generated_test/machineevents"
	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/topo"
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
