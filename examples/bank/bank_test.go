package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/topo"
)

// TestMain makes this executable the bank's program, because the cluster of a test
// starts it.
func TestMain(m *testing.M) {
	const program = "BANK_PROGRAM"
	if os.Getenv(program) != "" {
		main()
		return
	}
	os.Setenv(program, "true")
	os.Exit(m.Run())
}

// TestTransfers: a transfer moves money and returns the balances, or changes nothing.
func TestTransfers(t *testing.T) {
	speed.Checks(t, 40, 100, 1000)
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SampledFrom([]string{"", "ann", "bob", "cid", strings.Repeat("x", nameMax+1)})
		cents := rapid.OneOf(rapid.Int64Range(-1, 300), rapid.SampledFrom([]int64{centsMax, centsMax + 1, 1 << 62}))
		var a Accounts
		for range rapid.IntRange(1, 30).Draw(t, "transfers") {
			m := Transfer{names.Draw(t, "from"), names.Draw(t, "to"), cents.Draw(t, "cents")}
			before, total := maps.Clone(a.Cents), a.Total()
			b, err := m.Update(&a)
			if err != nil {
				if !maps.Equal(a.Cents, before) {
					t.Fatalf("%+v was refused, %v, but the accounts are %v and were %v", m, err, a.Cents, before)
				}
				continue
			}
			if m.From != "" && m.To != "" && a.Total() != total {
				t.Fatalf("%+v: the total is %d and was %d", m, a.Total(), total)
			}
			for name, c := range a.Cents {
				if c <= 0 || name == "" || len(name) > nameMax {
					t.Fatalf("%+v: %q has %d", m, name, c)
				}
			}
			if b.From != a.Cents[m.From] || b.To != a.Cents[m.To] {
				t.Fatalf("%+v returned %+v, but the accounts are %v", m, b, a.Cents)
			}
		}
	})
}

func TestRefusals(t *testing.T) {
	rich := Accounts{Cents: map[string]int64{"ann": balanceMax, "bob": 5}}
	full := Accounts{Cents: make(map[string]int64)}
	name := func(i int) string { return fmt.Sprintf("%0*d", nameMax, i) } // the longest allowed name
	for i := range accountsMax {
		full.Cents[name(i)] = 2
	}
	for _, c := range []struct {
		a    Accounts
		m    Transfer
		want error
	}{
		{rich, Transfer{"bob", "cid", 6}, ErrFunds},
		{rich, Transfer{"cid", "bob", 1}, ErrFunds},
		{rich, Transfer{"bob", "ann", 1}, ErrBalance},
		{rich, Transfer{"bob", "bob", 1}, ErrTransfer},
		{full, Transfer{name(0), "zoe", 1}, ErrAccounts},
	} {
		if _, err := c.m.Update(&c.a); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v, want %v", c.m, err, c.want)
		}
	}
}

// One handler without the topology: a recorder takes its place.
func TestTeller(t *testing.T) {
	there, back := Transfer{tenant, landlord, 1}, Transfer{landlord, tenant, 1}
	r := RecordTeller()
	var teller Teller
	teller.ReceiveTick(topo.Tick{}, r.Sender())
	teller.ReceiveTick(topo.Tick{}, r.Sender()) // the first proposal is still pending
	teller.ReceiveLedgerOutcome(&LedgerOutcome{Update: there}, r.Sender())
	teller.ReceiveTick(topo.Tick{}, r.Sender())
	teller.ReceiveLedgerOutcome(&LedgerOutcome{Update: there, Applied: fsm.Applied{Err: ErrFunds}}, r.Sender())
	teller.ReceiveTick(topo.Tick{}, r.Sender())
	teller.ReceiveLedgerOutcome(&LedgerOutcome{Update: back, Applied: fsm.Applied{Err: fsm.ErrUnknown}}, r.Sender())
	if want := []LedgerProposal{{Update: there}, {Update: there}, {Update: back}}; !slices.Equal(r.LedgerProposal, want) {
		t.Errorf("proposals: %v, want %v", r.LedgerProposal, want)
	}
	if want := []Entry{{there, Booked}, {there, Refused}, {back, Unknown}}; !slices.Equal(r.Entry, want) {
		t.Errorf("entries: %v, want %v", r.Entry, want)
	}
}

// The whole topology in one goroutine and in virtual time, without a disk: the teller
// proposes, the ledger refuses because the account is empty, and audit counts it.
func TestTheWholeInOneGoroutine(t *testing.T) {
	for seed := range uint64(3) {
		topology, err := newBank(false) // on three nodes, as in the topology file
		if err != nil {
			t.Fatal(err)
		}
		stepper := topology.Stepper(seed)
		if err := stepper.Advance(time.Second); err != nil {
			t.Fatal(err)
		}
		stepper.Stop()
		if err := stepper.Run(); err != nil {
			t.Fatal(err)
		}
		if got, want := topology.Audit(0).figures, (Figures{Refused: 10}); got != want {
			t.Errorf("seed %d: audit has %+v, want %+v", seed, got, want)
		}
	}
}

// TestWhichNode: the topology file lists the nodes, but the environment must name the
// own node.
func TestWhichNode(t *testing.T) {
	topology, err := newBank(false)
	if err != nil {
		t.Fatal(err)
	}
	if err := topology.Run(t.Context()); err == nil || !strings.Contains(err.Error(), raft.VariableNode) {
		t.Errorf("started without the name of the node: %v", err)
	}
}
