package main

import (
	"errors"

	"github.com/topogen/topogen/runtime/fsm"
)

const (
	nameMax     = 64            // bytes of an account's name
	centsMax    = 1_000_000_000 // of one transfer
	balanceMax  = 1 << 52       // of one account: sums of them stay far from overflowing
	accountsMax = 1000          // so that one answer can hold all of them
)

// Accounts is the state of the ledger: the balances of all accounts. An account with
// balance 0 is not in the map.
type Accounts struct{ Cents map[string]int64 }

// Transfer moves money from one account to another. If From is "", the money is a
// deposit. If To is "", it is a withdrawal.
type Transfer struct {
	From, To string
	Cents    int64
}

// Balances are the balances of the two accounts after a transfer. The balance of "" is
// 0.
type Balances struct{ From, To int64 }

// Reasons why a transfer is refused. Nothing has changed then.
var (
	ErrFunds    = errors.New("the account does not have enough money")
	ErrBalance  = errors.New("the balance of the account would be too large")
	ErrAccounts = errors.New("there are too many accounts")
	ErrTransfer = errors.New("the two names must be different and have at most 64 bytes, and cents must be 1 to 1000000000")
)

// check returns an error if a transfer is invalid, independently of the state.
func (t *Transfer) check() error {
	if t.From == t.To || len(t.From) > nameMax || len(t.To) > nameMax || t.Cents < 1 || t.Cents > centsMax {
		return ErrTransfer
	}
	return nil
}

// Update moves the money. It checks everything before it changes anything.
func (t *Transfer) Update(a *Accounts) (Balances, error) {
	balance, known := a.Cents[t.To]
	switch err := t.check(); {
	case err != nil:
		return Balances{}, err
	case t.From != "" && a.Cents[t.From] < t.Cents:
		return Balances{}, ErrFunds
	case t.To != "" && balance+t.Cents > balanceMax:
		return Balances{}, ErrBalance
	case t.To != "" && !known && len(a.Cents) >= accountsMax:
		return Balances{}, ErrAccounts
	}
	a.add(t.From, -t.Cents)
	a.add(t.To, t.Cents)
	return Balances{a.Cents[t.From], a.Cents[t.To]}, nil
}

func (a *Accounts) add(name string, cents int64) {
	switch balance := a.Cents[name] + cents; {
	case name == "":
	case balance == 0:
		delete(a.Cents, name)
	case a.Cents == nil:
		a.Cents = map[string]int64{name: balance}
	default:
		a.Cents[name] = balance
	}
}

// Total returns the sum of all balances.
func (a *Accounts) Total() (cents int64) {
	for _, c := range a.Cents {
		cents += c
	}
	return cents
}

// Entry is the outcome of a transfer.
type Entry struct {
	Transfer
	Outcome
}

// Outcome is the outcome of a transfer, as far as the proposer knows it.
type Outcome uint8

const (
	Booked  Outcome = iota // applied
	Refused                // not applied, and never will be
	Unknown                // it may have been applied, or may be applied later
)

func (o Outcome) String() string { return [...]string{"booked", "refused", "unknown"}[o] }

// outcome returns the outcome for the error of a proposal.
func outcome(err error) Outcome {
	switch {
	case err == nil:
		return Booked
	case fsm.OutcomeKnown(err):
		return Refused
	}
	return Unknown
}

// Inquiry asks audit for its Figures.
type Inquiry struct{}

// Figures count the outcomes of transfers since this process started.
type Figures struct {
	Booked  uint64 `json:"booked"`
	Refused uint64 `json:"refused"`
	Unknown uint64 `json:"unknown"`
	Cents   int64  `json:"cents"` // sum of the booked transfers
}
