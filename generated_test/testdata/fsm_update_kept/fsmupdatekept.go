// Package fsmupdatekept has updates that store the pointer to themselves in the state.
package fsmupdatekept

import (
	"github.com/topogen/topogen/generated_test/testdata/fsm_update_kept/other"
	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/topo"
)

type Bank struct{}

func (*Bank) ReceiveTick(topo.Tick)                   {}
func (*Bank) ReceiveAOutcome(AOutcome)                {}
func (*Bank) ReceiveAUpcoming(fsm.Upcoming[Transfer]) {}

type Accounts = other.Accounts

// Transfer is kept in a list and in a map.
type Transfer struct{ Cents int }

func (t *Transfer) Update(s *Accounts) error {
	s.All = append(s.All, t)
	return nil
}

func (t *Transfer) Revert(s *Accounts) error {
	s.Last = t
	return nil
}

// Deposit leaves a part of itself in the state.
type Deposit struct {
	Cents int
	Notes []string
}

func (d *Deposit) UpdateAt(s *Deposits, _ fsm.Entry) error {
	s.Cents = &d.Cents
	s.Notes = d.Notes // the state owns it
	return nil
}

type Deposits struct {
	Cents *int
	Notes []string
}

// Promoted points to the value that it keeps.
type Promoted struct{ *Transfer }
