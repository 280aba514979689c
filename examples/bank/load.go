package main

import (
	"context"
	crand "crypto/rand"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"
)

const (
	roundOperations = 100              // of each client between two readings of its branch
	readEvery       = 5                // one in so many operations, on average
	transferMax     = 400              // cents: often more than the balance
	grace           = 20 * time.Second // for requests that are pending when the time is over
)

// load runs the clients of the bank, and counts their results.
type load struct {
	http    *http.Client
	urls    func() []string
	clients int // of each branch
	began   time.Time
	rounds  chan *round
	booked  func(receipt) // called for each booked transfer

	transfers, refused, reads, unknown, retries atomic.Int64
}

func (l *load) newClient(at int) *client {
	return &client{name: crand.Text(), http: l.http, urls: l.urls, at: at, retries: &l.retries}
}

// open makes the first deposits.
func (l *load) open(ctx context.Context) error {
	c := l.newClient(0)
	deposits := []Transfer{{To: tenant, Cents: opening}}
	for branch := range cities {
		for owner := range owners {
			deposits = append(deposits, Transfer{To: accountOf(branch, owner), Cents: opening})
		}
	}
	for _, t := range deposits {
		if o, _, err := c.transfer(ctx, t); err != nil || o != Booked {
			return fmt.Errorf("the deposit into %s is %v: %w", t.To, o, err)
		}
	}
	return nil
}

// run runs the clients until ctx ends.
func (l *load) run(ctx context.Context) error {
	// Pending requests are still answered, and each branch is read once more.
	graceCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(grace, cancel) })()
	var all sync.WaitGroup
	errs := make(chan error, len(cities))
	for branch := range cities {
		all.Go(func() { errs <- l.runBranch(ctx, graceCtx, branch) })
	}
	all.Wait()
	close(l.rounds)
	close(errs)
	for err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// runBranch runs rounds in a branch.
func (l *load) runBranch(ctx, graceCtx context.Context, branch int) error {
	reader := l.newClient(branch)
	clients := make([]*client, l.clients)
	for i := range clients {
		clients[i] = l.newClient(branch + i)
	}
	last, err := l.read(graceCtx, reader, branch, len(clients))
	if err != nil {
		return err
	}
	before := last.Output.(result).cents
	for ctx.Err() == nil {
		r := &round{branch: branch, before: before}
		parts := make([][]porcupine.Operation, len(clients))
		var all sync.WaitGroup
		for i, c := range clients {
			all.Go(func() { parts[i] = l.runClient(ctx, graceCtx, c, branch, i) })
		}
		all.Wait()
		open := false
		for _, part := range parts {
			r.history = append(r.history, part...)
			open = open || len(part) > 0 && part[len(part)-1].Return == never
		}
		if last, err = l.read(graceCtx, reader, branch, len(clients)); err != nil {
			return err
		}
		r.history = append(r.history, last)
		l.rounds <- r
		if open {
			return nil // the transfer may still be applied, so the start of the next round would be unknown
		}
		before = last.Output.(result).cents
	}
	return nil
}

// runClient runs one client in one round.
func (l *load) runClient(ctx, graceCtx context.Context, c *client, branch, id int) (history []porcupine.Operation) {
	for range roundOperations {
		if ctx.Err() != nil {
			break
		}
		if rand.IntN(readEvery) == 0 {
			if o, err := l.read(graceCtx, c, branch, id); err == nil {
				history = append(history, o)
			}
			continue
		}
		from := rand.IntN(len(owners))
		in := operation{from: from, to: (from + 1 + rand.IntN(len(owners)-1)) % len(owners), cents: 1 + rand.Int64N(transferMax)}
		o := porcupine.Operation{ClientId: id, Input: in, Call: l.now()}
		got, r, err := c.transfer(graceCtx, Transfer{accountOf(branch, in.from), accountOf(branch, in.to), in.cents})
		o.Output, o.Return = result{outcome: got}, l.now()
		switch {
		case got == Unknown:
			l.unknown.Add(1)
			o.Return = never
			return append(history, o)
		case err != nil:
			return history // nothing was proposed
		case got == Booked:
			l.transfers.Add(1)
			l.booked(r)
		default:
			l.refused.Add(1)
		}
		history = append(history, o)
	}
	return history
}

// read reads a branch.
func (l *load) read(ctx context.Context, c *client, branch, id int) (porcupine.Operation, error) {
	o := porcupine.Operation{ClientId: id, Input: operation{read: true}, Call: l.now()}
	b, err := c.balances(ctx, cities[branch]+"/")
	if err != nil {
		return o, fmt.Errorf("%s cannot be read: %w", cities[branch], err)
	}
	l.reads.Add(1)
	o.Output, o.Return = result{cents: centsOf(branch, b)}, l.now()
	return o, nil
}

func (l *load) now() int64 { return int64(time.Since(l.began)) }
