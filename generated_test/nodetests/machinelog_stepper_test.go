package nodetests_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/topogen/topogen/generated_test/machinelog"
	"github.com/topogen/topogen/generated_test/machinelog/model"
	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/topo"
)

// stepped is the topology under a Stepper, without settings in the environment.
func stepped(t *testing.T, seed uint64, p machinelog.Processors) (*machinelog.Topology, *pool.Stepper) {
	t.Helper()
	t.Setenv(raft.VariableNode, "")
	t.Chdir(t.TempDir())
	t.Cleanup(func() {
		if list, err := os.ReadDir("."); err != nil || len(list) > 0 {
			t.Errorf("a folder of the log was made: %v, %v", list, err)
		}
	})
	top, err := machinelog.New(p)
	if err != nil {
		t.Fatal(err)
	}
	return top, top.Stepper(seed)
}

// TestMachineLogProposeUnderAStepper uses state machines with a log and with three nodes from outside,
// before the first step and between steps.
func TestMachineLogProposeUnderAStepper(t *testing.T) {
	top, _ := stepped(t, 1, machinelog.Processors{})
	ctx := t.Context()
	if cents, err := top.Ledger().Propose(ctx, machinelog.Transfer{To: "ann", Cents: 7}); err != nil || cents != 7 {
		t.Errorf("Propose returns %d, %v", cents, err)
	}
	if _, err := top.Ledger().Propose(ctx, machinelog.Transfer{To: "ann", Cents: 101}); !errors.Is(err, machinelog.ErrTooMuch) || !fsm.OutcomeKnown(err) {
		t.Errorf("a large transfer: %v", err)
	}
	first, err := top.Journal().ProposeResult(ctx, model.Entry{Line: "one", Page: 3})
	if err != nil || first.Value.Page != 3 || first.Value.Line != 1 || first.Index == 0 || first.Term == 0 {
		t.Errorf("ProposeResult returns %+v, %v", first, err)
	}
	second, err := top.Journal().ProposeResult(ctx, model.Entry{Line: "two", Page: 3})
	if err != nil || second.Value.Line != 2 || second.Index <= first.Index {
		t.Errorf("ProposeResult returns %+v, %v, after %+v", second, err, first)
	}
	for name, read := range map[string]func(context.Context, func(*machinelog.Pages)) error{
		"Read":      top.Journal().Read,
		"LeaseRead": top.Journal().LeaseRead,
		"Stale":     func(_ context.Context, f func(*machinelog.Pages)) error { return top.Journal().Stale(f) },
	} {
		var got string
		if err := read(ctx, func(p *machinelog.Pages) { got = fmt.Sprint(*p) }); err != nil || got != "map[3:[one two]]" {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

// TestMachineLogSessionsUnderAStepper checks that a repeated proposal in a session is applied once.
func TestMachineLogSessionsUnderAStepper(t *testing.T) {
	top, _ := stepped(t, 1, machinelog.Processors{})
	ctx := t.Context()
	opened, err := top.Journal().OpenSession(ctx, "test")
	if err != nil || opened.Number() == 0 {
		t.Fatal(opened, err)
	}
	session := opened.Number()
	first, err := top.Journal().ProposeAs(ctx, session, 1, 1, model.Entry{Line: "one", Page: 1})
	if err != nil {
		t.Fatal(err)
	}
	again, err := top.Journal().ProposeAs(ctx, session, 1, 1, model.Entry{Line: "one", Page: 1})
	if err != nil || again.Value != first.Value || again.Index != first.Index {
		t.Errorf("first %+v, then %+v, %v", first, again, err)
	}
	if _, err := top.Journal().ProposeAs(ctx, session+1, 1, 1, model.Entry{Line: "one", Page: 1}); !errors.Is(err, fsm.ErrSessionExpired) {
		t.Errorf("an unknown session: %v", err)
	}
	if _, err := top.Journal().ProposeAs(ctx, session, 0, 0, model.Entry{Line: "one", Page: 1}); err == nil {
		t.Error("the number 0 is taken")
	}
}

// TestMachineLogStatusUnderAStepper checks that a state machine under a Stepper is a group of one node,
// which leads.
func TestMachineLogStatusUnderAStepper(t *testing.T) {
	top, _ := stepped(t, 1, machinelog.Processors{})
	ctx := t.Context()
	r, err := top.Journal().ProposeResult(ctx, model.Entry{Line: "one"})
	if err != nil {
		t.Fatal(err)
	}
	j := top.Journal()
	leader, ok := j.Leader()
	s := j.Status()
	if !ok || s.Role != "leader" || s.Leader != leader || s.Node != leader || s.Applied != r.Index || s.Commit != r.Index || s.Last != r.Index || s.Term != r.Term {
		t.Errorf("%q leads, %v; %+v after %+v", leader, ok, s, r)
	}
	if err := j.Wait(ctx, r.Index); err != nil {
		t.Error(err)
	}
	if err := j.Wait(ctx, r.Index+1); err == nil {
		t.Error("Wait returns before the entry is there")
	}
	if at, err := j.Snapshot(ctx); err != nil || at != r.Index {
		t.Errorf("a snapshot at %d, %v", at, err)
	}
	if err := j.TransferLeader(ctx, leader); err != nil {
		t.Error(err)
	}
	if err := j.TransferLeader(ctx, "n2"); !errors.Is(err, raft.ErrMembers) {
		t.Errorf("TransferLeader returns %v", err)
	}
	if err := j.ChangeMembers(ctx, raft.Change{Kind: raft.Remove, Name: "n2"}); !errors.Is(err, raft.ErrMembers) {
		t.Errorf("ChangeMembers returns %v", err)
	}
}

// TestMachineLogAHandlerUsesAMachineUnderAStepper checks that a handler that calls a state machine gets
// the same results in each run with the same seed.
func TestMachineLogAHandlerUsesAMachineUnderAStepper(t *testing.T) {
	runs := func(seed uint64) (lines []string) {
		var top *machinelog.Topology
		var s *pool.Stepper
		top, s = stepped(t, seed, machinelog.Processors{Bank: func(in topo.Instance) (*machinelog.Bank, error) {
			return &machinelog.Bank{Heard: func(m *machinelog.LedgerOutcome) {
				place, err := top.Journal().Propose(t.Context(), model.Entry{Line: m.Update.To, Page: in.Index})
				if err != nil {
					t.Error(err)
				}
				err = top.Ledger().Read(t.Context(), func(a *machinelog.Accounts) {
					lines = append(lines, fmt.Sprint(m.Index, m.Value, place, machinelog.Count(a)))
				})
				if err != nil {
					t.Error(err)
				}
			}}, nil
		}})
		if err := s.Run(); err != nil {
			t.Fatal(err)
		}
		return lines
	}
	first, again := runs(7), runs(7)
	if len(first) != machinelog.Transfers || fmt.Sprint(first) != fmt.Sprint(again) {
		t.Errorf("%d lines, then %d, or others", len(first), len(again))
	}
}
