package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
)

// Ledger adds payments up. It lives as long as the topology, whatever becomes of
// batches.
type Ledger struct {
	out      io.Writer
	cents    map[string]int
	files    []string
	restarts int
}

// NewLedger returns one that prints to stdout.
func NewLedger() *Ledger { return &Ledger{out: os.Stdout, cents: make(map[string]int)} }

func (l *Ledger) ReceivePayment(p *Payment) { l.cents[p.Account] += p.Cents }

// ReceiveBooked comes behind the payments of the file: what one instance sends
// arrives in that order.
func (l *Ledger) ReceiveBooked(b Booked) {
	l.files = append(l.files, b.File)
	fmt.Fprintln(l.out, b.File, "is booked")
}

// ProcessorRestarted tells of each new Batch.
func (l *Ledger) ProcessorRestarted(p ProcessorIndex) { l.restarts++ }

func (l *Ledger) Finish() {
	for _, account := range slices.Sorted(maps.Keys(l.cents)) {
		fmt.Fprintf(l.out, "%-8s %6d\n", account, l.cents[account])
	}
	fmt.Fprintf(l.out, "%d files, %d restarts\n", len(l.files), l.restarts)
}
