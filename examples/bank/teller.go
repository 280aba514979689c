package main

import (
	"errors"
	"log/slog"

	"github.com/topogen/topogen/runtime/topo"
)

// The accounts of the standing order that each node carries out.
const (
	tenant   = "standing/tenant"
	landlord = "standing/landlord"
)

// Teller carries out a standing order: it transfers one cent at a time from one account
// to another, and when the account is empty, in the other direction. There is one
// pending proposal at a time.
type Teller struct {
	waiting bool
	back    bool // transfer in the other direction
}

func (t *Teller) ReceiveTick(_ topo.Tick, out *TellerSender) {
	if t.waiting {
		return // the last proposal is still pending
	}
	t.waiting = true
	order := Transfer{From: tenant, To: landlord, Cents: 1}
	if t.back {
		order.From, order.To = order.To, order.From
	}
	out.ProposeToLedger(order)
}

// ReceiveLedgerOutcome is called for each proposal. If the leader is lost in between,
// it is called later.
func (t *Teller) ReceiveLedgerOutcome(m *LedgerOutcome, out *TellerSender) {
	t.waiting = false
	if errors.Is(m.Err, ErrFunds) {
		t.back = !t.back
	} else if m.Err != nil {
		slog.Warn("a standing order was not carried out", "error", m.Err)
	}
	out.SendEntry(Entry{m.Update, outcome(m.Err)})
}
