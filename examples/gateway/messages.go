package main

// Deposit adds an amount to an account.
type Deposit struct {
	Account string
	Amount  int64
}

// Lookup requests the balance of an account.
type Lookup struct{ Account string }

// Balance is the reply to both.
type Balance struct {
	Account string `json:"account"`
	Amount  int64  `json:"amount"`
	Known   bool   `json:"-"` // whether there was ever a deposit
}

// Booked says that a deposit is in a journal.
type Booked struct{ Amount int64 }
