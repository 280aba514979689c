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

// Teller carries out a standing order: a cent goes from one account to another, and
// when there is nothing left, from there back. One is under way at a time.
type Teller struct {
	waiting bool
	back    bool // the next goes the other way
}

func (t *Teller) ReceiveTick(_ topo.Tick, out *TellerSender) {
	if t.waiting {
		return // there is no leader now
	}
	t.waiting = true
	order := Transfer{From: tenant, To: landlord, Cents: 1}
	if t.back {
		order.From, order.To = order.To, order.From
	}
	out.ProposeToLedger(order)
}

// ReceiveLedgerOutcome is called for each proposal. A leader that is lost in between
// makes it late, and nothing else.
func (t *Teller) ReceiveLedgerOutcome(m *LedgerOutcome, out *TellerSender) {
	t.waiting = false
	if errors.Is(m.Err, ErrFunds) {
		t.back = !t.back
	} else if m.Err != nil {
		slog.Warn("a standing order was not carried out", "error", m.Err)
	}
	out.SendEntry(Entry{m.Update, outcome(m.Err)})
}
