package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
)

// Ledger adds up payments. It keeps running when a Batch ends or fails.
type Ledger struct {
	out      io.Writer
	cents    map[string]int
	files    []string
	restarts int
}

// NewLedger returns a Ledger that prints to stdout.
func NewLedger() *Ledger { return &Ledger{out: os.Stdout, cents: make(map[string]int)} }

func (l *Ledger) ReceivePayment(p *Payment) { l.cents[p.Account] += p.Cents }

// ReceiveBooked is called after the payments of the file, because messages of one
// instance arrive in order.
func (l *Ledger) ReceiveBooked(b Booked) {
	l.files = append(l.files, b.File)
	fmt.Fprintln(l.out, b.File, "is booked")
}

// ProcessorRestarted is called for each new Batch.
func (l *Ledger) ProcessorRestarted(p ProcessorIndex) { l.restarts++ }

func (l *Ledger) Finish() {
	for _, account := range slices.Sorted(maps.Keys(l.cents)) {
		fmt.Fprintf(l.out, "%-8s %6d\n", account, l.cents[account])
	}
	fmt.Fprintf(l.out, "%d files, %d restarts\n", len(l.files), l.restarts)
}
