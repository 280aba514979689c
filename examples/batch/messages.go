package main

// Payment is a line of a file.
type Payment struct {
	Account string
	Cents   int
}

// Booked says that all payments of a file were sent.
type Booked struct{ File string }
