package main

// Ledger sees all that was booked, whichever instance did it.
type Ledger struct {
	Deposits int
	Sum      int64
}

// ReceiveBooked adds it up.
func (l *Ledger) ReceiveBooked(m Booked) {
	l.Deposits++
	l.Sum += m.Amount
}
