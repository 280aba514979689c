// Package machinegroups has state machines with several instances. The key of an update
// chooses the instance.
package machinegroups

import (
	"errors"

	"github.com/topogen/topogen/runtime/topo"
)

// Accounts is the state of one group.
type Accounts struct{ Cents map[string]int64 }

// Owner is the owner of an account.
type Owner struct{ Name string }

// Transfer is an update. Its key is behind a pointer.
type Transfer struct {
	Owner *Owner
	Cents int64
}

// ErrNobody is the error of a transfer without an owner.
var ErrNobody = errors.New("nobody")

// Update returns the balance of the owner.
func (t *Transfer) Update(a *Accounts) (int64, error) {
	if t.Owner == nil {
		return 0, ErrNobody
	}
	if a.Cents == nil {
		a.Cents = make(map[string]int64)
	}
	a.Cents[t.Owner.Name] += t.Cents
	return a.Cents[t.Owner.Name], nil
}

// Entries counts the puts of each word.
type Entries struct{ Words map[string]int }

// Put counts a word.
type Put struct {
	Word string
	Slot int32
}

// Hash is a key that is a method.
func (p *Put) Hash() uint16 { return uint16(len(p.Word)) }

// Update returns the count of the word.
func (p *Put) Update(e *Entries) (int, error) {
	if e.Words == nil {
		e.Words = make(map[string]int)
	}
	e.Words[p.Word]++
	return e.Words[p.Word], nil
}

// Order is a request of a client.
type Order struct {
	Name  string
	Cents int64
}

// Clients send orders, one for each name.
type Clients struct{ Names []string }

func (c *Clients) Ping(out *ClientsSender) error {
	if len(c.Names) == 0 {
		return topo.Done
	}
	name := c.Names[0]
	c.Names = c.Names[1:]
	return out.SendOrder(Order{Name: name, Cents: 1})
}

// Bank proposes to both state machines, and passes the answers on.
type Bank struct {
	Heard func(*LedgerOutcome)
	Index int
	Shard func(bank int, o *ShardOutcome)
}

func (b *Bank) ReceiveOrder(m *Order, out *BankSender) {
	out.ProposeToLedger(Transfer{Owner: &Owner{m.Name}, Cents: m.Cents})
	out.ProposeToShard(Put{Word: m.Name})
}

func (b *Bank) ReceiveLedgerOutcome(m *LedgerOutcome) {
	if b.Heard != nil {
		b.Heard(m)
	}
}

func (b *Bank) ReceiveShardOutcome(m *ShardOutcome) {
	if b.Shard != nil {
		b.Shard(b.Index, m)
	}
}
