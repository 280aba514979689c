// Package machinelog has a state machine on one disk, and one on three hosts.
package machinelog

import (
	"errors"

	"github.com/topogen/topogen/generated_test/machinelog/model"
	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/topo"
)

// Accounts is a state with parts of many kinds.
type Accounts struct {
	Cents map[string]int64
	Last  *Transfer
	count int
}

// Transfer is an update, and a message too.
type Transfer struct {
	To    string
	Cents int64
}

// ErrTooMuch is what a large transfer ends with.
var ErrTooMuch = errors.New("too much")

// Update returns what the account has.
func (t *Transfer) Update(a *Accounts) (int64, error) {
	if t.Cents > 100 {
		return 0, ErrTooMuch
	}
	if a.Cents == nil {
		a.Cents = make(map[string]int64)
	}
	a.Cents[t.To] += t.Cents
	last := *t
	a.Last = &last
	a.count++
	return a.Cents[t.To], nil
}

func (t *Transfer) Revert(a *Accounts) error {
	a.Cents[t.To] -= t.Cents
	a.count--
	return nil
}

// Pages is the state of the other package.
type Pages = model.Pages

const transfers = 300

type Clients struct{ sent int }

func (c *Clients) Ping(out *ClientsSender) error {
	if c.sent == transfers {
		return topo.Done
	}
	c.sent++
	return out.SendTransfer(Transfer{To: string(rune('a' + c.sent%7)), Cents: 1})
}

// Bank proposes what it gets and passes on the answers.
type Bank struct{ heard func(*LedgerOutcome) }

func (b *Bank) ReceiveTransfer(m *Transfer, out *BankSender) { out.ProposeToLedger(*m) }

func (b *Bank) ReceiveLedgerOutcome(m *LedgerOutcome, out *BankSender) error {
	if errors.Is(m.Err, fsm.ErrNotLeader) { // it has only begun
		out.ProposeToLedger(m.Update)
		return nil
	}
	if b.heard != nil {
		b.heard(m)
	}
	return nil
}
