package main

import (
	"errors"

	"github.com/topogen/topogen/runtime/fsm"
)

const (
	nameMax     = 64            // bytes of an account's name
	centsMax    = 1_000_000_000 // of one transfer
	balanceMax  = 1 << 52       // of one account: sums of them stay far from overflowing
	accountsMax = 1000          // so that an answer may hold them all
)

// Accounts is the state of the ledger: who has how much. Who has nothing is not in it.
type Accounts struct{ Cents map[string]int64 }

// Transfer moves money from one account to another. From nobody, "", it is money
// that comes into the bank, to nobody it leaves.
type Transfer struct {
	From, To string
	Cents    int64
}

// Balances are what the two accounts of a transfer have afterwards; nobody has 0.
type Balances struct{ From, To int64 }

// Why a transfer is refused. Nothing has changed then.
var (
	ErrFunds    = errors.New("there is not that much in the account")
	ErrBalance  = errors.New("that would be too much in one account")
	ErrAccounts = errors.New("there are too many accounts")
	ErrTransfer = errors.New("want two different names of at most 64 bytes, and cents from 1 to 1000000000")
)

// check says what is wrong with a transfer whatever the state.
func (t *Transfer) check() error {
	if t.From == t.To || len(t.From) > nameMax || len(t.To) > nameMax || t.Cents < 1 || t.Cents > centsMax {
		return ErrTransfer
	}
	return nil
}

// Update moves the money. All that can be wrong is found before anything changes.
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

// Total is what all have together.
func (a *Accounts) Total() (cents int64) {
	for _, c := range a.Cents {
		cents += c
	}
	return cents
}

// Entry says what became of a transfer.
type Entry struct {
	Transfer
	Outcome
}

// Outcome is what became of a transfer, as far as who asked knows.
type Outcome uint8

const (
	Booked  Outcome = iota // applied
	Refused                // not applied, now and later
	Unknown                // it may have been applied, or may yet be
)

func (o Outcome) String() string { return [...]string{"booked", "refused", "unknown"}[o] }

// outcome tells it from the error of a proposal.
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

// Figures count what became of transfers since this process has begun.
type Figures struct {
	Booked  uint64 `json:"booked"`
	Refused uint64 `json:"refused"`
	Unknown uint64 `json:"unknown"`
	Cents   int64  `json:"cents"` // of what was booked
}
