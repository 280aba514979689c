// Package machineevents has state machines that send events to other processors: applied
// updates and changes of the leader.
package machineevents

import (
	"errors"

	"github.com/topogen/topogen/runtime/topo"
)

// Accounts is a state.
type Accounts struct{ Cents map[string]int64 }

// Transfer is an update.
type Transfer struct {
	Account string
	Cents   int64
}

// ErrNoMoney is the error of a transfer that would make the balance negative.
var ErrNoMoney = errors.New("no money")

// Update returns the balance of the account.
func (t *Transfer) Update(a *Accounts) (int64, error) {
	if a.Cents[t.Account]+t.Cents < 0 {
		return 0, ErrNoMoney
	}
	if a.Cents == nil {
		a.Cents = make(map[string]int64)
	}
	a.Cents[t.Account] += t.Cents
	return a.Cents[t.Account], nil
}

// Deposit is an update without a result, which holds a pointer.
type Deposit struct{ Of *Transfer }

// Clone copies the transfer too.
func (d *Deposit) Clone() Deposit {
	of := *d.Of
	return Deposit{&of}
}

func (d *Deposit) Cents() int64 {
	if d.Of == nil {
		return 0
	}
	return d.Of.Cents
}

// Update adds the deposit.
func (d *Deposit) Update(a *Accounts) error {
	_, err := d.Of.Update(a)
	return err
}

// Order is a request of a client.
type Order struct{ Transfer Transfer }

// Clients send orders.
type Clients struct{ Orders []Order }

func (c *Clients) Ping(out *ClientsSender) error {
	if len(c.Orders) == 0 {
		return topo.Done
	}
	o := c.Orders[0]
	c.Orders = c.Orders[1:]
	return out.SendOrder(o)
}

// Bank proposes.
type Bank struct{}

func (Bank) ReceiveOrder(o Order, out *BankSender) { out.ProposeToLedger(o.Transfer) }

// Audit receives all events and passes them to functions. A nil function ignores them.
type Audit struct {
	Ledger     func(LedgerApplied)
	Stock      func(StockApplied)
	Till       func(TillApplied)
	Leadership func(machine string, l LedgerLeadership)
}

func (a *Audit) ReceiveLedgerApplied(m LedgerApplied) {
	if a.Ledger != nil {
		a.Ledger(m)
	}
}

func (a *Audit) ReceiveStockApplied(m StockApplied) {
	if a.Stock != nil {
		a.Stock(m)
	}
}

func (a *Audit) ReceiveTillApplied(m *TillApplied) {
	if a.Till != nil {
		a.Till(*m)
	}
}

func (a *Audit) tell(machine string, l LedgerLeadership) {
	if a.Leadership != nil {
		a.Leadership(machine, l)
	}
}

func (a *Audit) ReceiveLedgerLeadership(l LedgerLeadership) { a.tell("ledger", l) }
func (a *Audit) ReceiveStockLeadership(l StockLeadership)   { a.tell("stock", l) }
func (a *Audit) ReceiveTillLeadership(l *TillLeadership)    { a.tell("till", *l) }

// Board shows the balance of accounts.
type Board struct {
	Index int
	Shown func(board int, account string, cents int64)
}

func (b *Board) ReceiveLedgerApplied(m *LedgerApplied) {
	if b.Shown != nil {
		b.Shown(b.Index, m.Update.Account, m.Value)
	}
}
