// Package machinelog has a state machine with a log on one node, and one on three nodes.
package machinelog

import (
	"errors"
	"time"

	"github.com/topogen/topogen/generated_test/machinelog/model"
	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/topo"
)

// Accounts is a state with fields of many types.
type Accounts struct {
	Cents map[string]int64
	Last  *Transfer
	count int
}

// Transfer is an update and also a message.
type Transfer struct {
	To    string
	Cents int64
}

// ErrTooMuch is the error of a large transfer.
var ErrTooMuch = errors.New("too much")

// Update returns the balance of the account.
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

// Shelves is a state whose elements are large in memory. An empty shelf is encoded in a few bytes.
type Shelves struct {
	ByNumber map[int]Shelf
	Next     *Shelves // makes the type recursive
	Best     *Shelf
}

// Shelf is also the update: it adds itself to the state.
type Shelf struct {
	Number                    int
	Top, Middle, Bottom, Back Box
}

// Box takes 480 bytes in memory. An empty box is encoded in two bytes.
type Box struct {
	Made, Ordered, Packed, Sent, Came, Stored, Counted, Checked, Cleaned, Painted time.Time
	Offered, Reserved, Sold, Paid, Fetched, Returned, Mended, Lost, Found, Thrown time.Time
}

func (u *Shelf) Update(s *Shelves) error {
	if s.ByNumber == nil {
		s.ByNumber = make(map[int]Shelf)
	}
	s.ByNumber[u.Number] = *u
	best := *u
	s.Best = &best
	return nil
}

// Pages is the state of the other package.
type Pages = model.Pages

const Transfers = 300

type Clients struct{ sent int }

func (c *Clients) Ping(out *ClientsSender) error {
	if c.sent == Transfers {
		return topo.Done
	}
	c.sent++
	return out.SendTransfer(Transfer{To: string(rune('a' + c.sent%7)), Cents: 1})
}

// Bank proposes the updates that it receives and passes the answers on.
type Bank struct{ Heard func(*LedgerOutcome) }

func (b *Bank) ReceiveTransfer(m *Transfer, out *BankSender) { out.ProposeToLedger(*m) }

func (b *Bank) ReceiveLedgerOutcome(m *LedgerOutcome, out *BankSender) error {
	if errors.Is(m.Err, fsm.ErrNotLeader) { // there is no leader yet
		out.ProposeToLedger(m.Update)
		return nil
	}
	if b.Heard != nil {
		b.Heard(m)
	}
	return nil
}
