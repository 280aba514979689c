package fsmupdatemethodswrong

import (
	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/topo"
)

type Accounts struct{ Cents int }

type Nothing struct{}

type Half struct{}

func (Half) Update(*Accounts) error { return nil }

type Shapes struct{}

func (Shapes) Update(Accounts) error { return nil }
func (Shapes) Revert(*Accounts)      {}

type Variadic struct{}

func (Variadic) Update(...*Accounts) error           { return nil }
func (Variadic) Revert(*Accounts, int) (error, bool) { return nil, false }

type Good struct{}

func (*Good) Update(*Accounts) error { return nil }
func (Good) Revert(*Accounts) error  { return nil }

// Value returns one, which the file does not say, or says otherwise.
type Value struct{}

func (Value) Update(*Accounts) (Receipt, error) { return Receipt{}, nil }

type Receipt struct{}

// At is called with an entry, and returns another value than the file says.
type At struct{}

func (At) Update(*Accounts) error                      { return nil }
func (At) UpdateAt(*Accounts, fsm.Entry) (int8, error) { return 0, nil }

// AtAlone has another form than UpdateAt.
type AtAlone struct{}

func (AtAlone) UpdateAt(*Accounts) error { return nil }

type Bank struct{}

func (Bank) ReceiveTick(t topo.Tick, out *BankSender) {
	out.ProposeToI(Good{})
	out.SendIRevert(IRevert{})
}

func (Bank) ReceiveIOutcome(m *Good)                   {}
func (Bank) ReceiveIUpcomming(m *IUpcoming)            {}
func (Bank) ReceiveCOutcome(COutcome, *BankSender) int { return 0 }
