package localtests_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/topogen/topogen/generated_test/machine"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/pool"
)

func buildMachine(t *testing.T, opts ...pool.Option) *machine.Topology {
	t.Helper()
	top, err := machine.New(machine.Processors{}, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return top
}

// checkMachine checks that the proposing instance got one outcome for each transfer, that the sum of
// money is the same, and that the updates of Finish were applied.
func checkMachine(t *testing.T, top *machine.Topology) {
	t.Helper()
	asked, applied := 0, 0
	for i := range 3 {
		b := top.Bank(i)
		asked, applied = asked+b.Asked, applied+b.Applied
		if len(b.Wrong) > 0 || b.Applied+b.Rejected != b.Asked {
			t.Errorf("instance %d: asked for %d, %d applied, %d rejected, wrong: %q", i, b.Asked, b.Applied, b.Rejected, b.Wrong)
		}
		// Other instances add updates at the same time, so check only the updates of this instance.
		if len(b.Upcoming) != 3 {
			t.Errorf("instance %d has heard %d times what is upcoming, not 3 times", i, len(b.Upcoming))
		}
	}
	if asked != machine.Orders || applied == 0 || applied == machine.Orders {
		t.Errorf("%d transfers, %d applied", asked, applied)
	}
	var got machine.Accounts
	if err := top.Ledger().Read(t.Context(), func(a *machine.Accounts) { got = *a }); err != nil {
		t.Fatal(err)
	}
	var sum int64
	for _, cents := range got.Cents {
		sum += cents
	}
	if sum != 0 || got.Cents["zoe"] < 3 || got.Cents["zoe"]%3 != 0 {
		t.Errorf("the sum is %d: %v", sum, got.Cents)
	}
	var notes machine.Count
	if err := top.Notes().Read(t.Context(), func(n *machine.Count) { notes = *n }); err != nil || notes != machine.Orders/10 {
		t.Errorf("%d notes, %v", notes, err)
	}
	if e := top.Tree().Edge(machine.EdgeLedgerBankLedgerOutcome); e.Sent() != machine.Orders || e.Received() != machine.Orders {
		t.Errorf("%d outcomes were sent, %d received", e.Sent(), e.Received())
	}
	if e := top.Tree().Edge(machine.EdgeNotesQuietNotesOutcome); e.Sent() != machine.Orders/10 || e.Received() != machine.Orders/10 {
		t.Errorf("%d outcomes of notes were sent, %d taken", e.Sent(), e.Received())
	}
}

func TestMachineRun(t *testing.T) {
	for _, workers := range []int{1, 4} {
		top := buildMachine(t, pool.Workers(workers))
		if _, err := top.Ledger().Propose(t.Context(), machine.Transfer{}); !errors.Is(err, fsm.ErrNotRunning) {
			t.Errorf("before Run, Propose returns %v", err)
		}
		if err := top.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		checkMachine(t, top)
		if _, err := top.Ledger().Propose(t.Context(), machine.Transfer{}); !errors.Is(err, fsm.ErrStopped) {
			t.Errorf("after Run, Propose returns %v", err)
		}
	}
}

// TestMachineStepper checks that a seed gives the same trace in each run.
func TestMachineStepper(t *testing.T) {
	for seed := range speed.Pick(t, uint64(3), 20, 20) {
		var traces [2][]string
		for i := range traces {
			top := buildMachine(t)
			s := top.Stepper(seed)
			s.Trace(func(_ uint64, processor string, _ int) { traces[i] = append(traces[i], processor) })
			if err := s.Run(); err != nil {
				t.Fatal(err)
			}
			checkMachine(t, top)
		}
		if !slices.Equal(traces[0], traces[1]) {
			t.Fatalf("seed %d: two runs differ", seed)
		}
	}
}

// TestMachineRecorder checks that a recorder has the proposals of a handler.
func TestMachineRecorder(t *testing.T) {
	r := machine.RecordBank()
	var b machine.Bank
	b.ReceiveOrder(&machine.Order{From: "ann", To: "bob", Cents: 3}, r.Sender())
	want := []machine.LedgerProposal{{Update: machine.Transfer{From: "ann", To: "bob", Cents: 3}}}
	if diff := cmp.Diff(want, r.LedgerProposal); diff != "" {
		t.Error(diff)
	}
}
