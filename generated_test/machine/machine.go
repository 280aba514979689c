// Package machine has state machines in memory: one whose controller has several
// instances and handles its answers, and one whose controller does not.
package machine

import (
	"errors"
	"fmt"

	"github.com/topogen/topogen/runtime/topo"
)

// Order is a request of a client.
type Order struct {
	From, To string
	Cents    int64
}

// Accounts is the state of the ledger.
type Accounts struct{ Cents map[string]int64 }

// Transfer is the update of the ledger.
type Transfer struct {
	From, To string
	Cents    int64
}

// ErrNoMoney is the error of a transfer from an account without enough money.
var ErrNoMoney = errors.New("no money")

// Balances are the balances of both accounts after a transfer.
type Balances struct{ From, To int64 }

// Update moves money. The account "" has any amount.
func (t *Transfer) Update(a *Accounts) (b Balances, err error) {
	if a.Cents == nil {
		a.Cents = make(map[string]int64)
	}
	if t.From != "" && a.Cents[t.From] < t.Cents {
		return b, ErrNoMoney
	}
	a.Cents[t.From] -= t.Cents
	a.Cents[t.To] += t.Cents
	return Balances{a.Cents[t.From], a.Cents[t.To]}, nil
}

// Revert moves the money back.
func (t *Transfer) Revert(a *Accounts) error {
	a.Cents[t.From] += t.Cents
	a.Cents[t.To] -= t.Cents
	return nil
}

const Orders = 1000

// Clients gives each account some money and then spends more than there is.
type Clients struct{ sent int }

var names = []string{"ann", "bob", "cid", "dee", "eve", "fay", "gus"}

func (c *Clients) Ping(out *ClientsSender) error {
	if c.sent == Orders {
		return topo.Done
	}
	from := names[c.sent%len(names)]
	o := Order{From: from, To: names[(c.sent*3+1)%len(names)], Cents: int64(c.sent % 50)}
	if c.sent < len(names) {
		o = Order{To: from, Cents: 100}
	}
	c.sent++
	if c.sent%10 == 0 {
		if err := out.SendText("note"); err != nil {
			return err
		}
	}
	return out.SendOrder(o)
}

// Bank proposes transfers. At its end it asks for the upcoming updates.
type Bank struct {
	Asked, Applied, Rejected int
	Upcoming                 [][]Transfer
	Wrong                    []string
	asked                    map[Transfer]int
}

func (b *Bank) ReceiveOrder(m *Order, out *BankSender) {
	if b.asked == nil {
		b.asked = make(map[Transfer]int)
	}
	t := Transfer(*m)
	b.Asked++
	b.asked[t]++
	out.ProposeToLedger(t)
}

// ReceiveLedgerOutcome counts outcomes. Each is the outcome of a transfer that this instance
// has proposed.
func (b *Bank) ReceiveLedgerOutcome(m *LedgerOutcome) {
	if b.asked[m.Update] == 0 {
		b.Wrong = append(b.Wrong, m.Update.From+" to "+m.Update.To)
	}
	b.asked[m.Update]--
	switch {
	case m.Err == nil && (m.Value.To < m.Update.Cents || m.Update.From != "" && m.Value.From < 0):
		b.Wrong = append(b.Wrong, fmt.Sprintf("%+v returns %+v", m.Update, m.Value))
	case m.Err == nil:
		b.Applied++
	case errors.Is(m.Err, ErrNoMoney) && m.Value == Balances{}:
		b.Rejected++
	default:
		b.Wrong = append(b.Wrong, m.Err.Error())
	}
}

func (b *Bank) ReceiveLedgerUpcoming(m *LedgerUpcoming) {
	b.Upcoming = append(b.Upcoming, m.Updates)
}

// Finish sends the other messages of a controller: it reverts updates, commits updates, and
// asks for the upcoming updates.
func (b *Bank) Finish(out *BankSender) {
	gift := LedgerUpdates{Updates: []Transfer{{To: "zoe", Cents: 1}, {To: "zoe", Cents: 2}}}
	out.SendLedgerUpdates(gift)
	out.SendLedgerGetUpcoming(LedgerGetUpcoming{Proposer: 99}) // the sender overwrites Proposer
	out.SendLedgerRevert(LedgerRevert{})
	out.SendLedgerGetUpcoming(LedgerGetUpcoming{})
	out.SendLedgerUpdates(gift)
	out.SendLedgerCommit(LedgerCommit{})
	out.SendLedgerGetUpcoming(LedgerGetUpcoming{})
}

// Quiet proposes, and has no handler for the outcome.
type Quiet struct{}

func (Quiet) ReceiveText(m Text, out *QuietSender) { out.ProposeToNotes(Note(m)) }

// Text is a message, Note the update that stores it, Count the number of notes.
type (
	Text  string
	Note  string
	Count int
)

func (*Note) Update(n *Count) error { *n++; return nil }
