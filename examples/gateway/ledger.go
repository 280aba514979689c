package main

// Ledger receives all bookings, of all instances.
type Ledger struct {
	Deposits int
	Sum      int64
}

// ReceiveBooked adds up the amounts.
func (l *Ledger) ReceiveBooked(m Booked) {
	l.Deposits++
	l.Sum += m.Amount
}
