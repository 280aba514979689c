package main

// Deposit puts an amount into an account.
type Deposit struct {
	Account string
	Amount  int64
}

// Lookup asks what is in an account.
type Lookup struct{ Account string }

// Balance answers both.
type Balance struct {
	Account string `json:"account"`
	Amount  int64  `json:"amount"`
	Known   bool   `json:"-"` // whether anything was ever put in
}

// Booked says that an amount is safe in a journal.
type Booked struct{ Amount int64 }
