package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

const (
	pollEvery = 100 * time.Millisecond // of the status of the nodes
	lineEvery = 5 * time.Second        // between two lines if the output is not a terminal
)

// demonstrate runs a bank and its clients, kills its leaders, and reports at the end
// whether the bank was consistent. The error says what was wrong.
func demonstrate(ctx context.Context, s *screen, o options) (err error) {
	dir := o.dir
	if dir == "" {
		if dir, err = os.MkdirTemp("", "bank"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	} else if err = os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	c, err := newCluster(dir, o.nodes, o.alone)
	if err != nil {
		return err
	}
	defer c.stop()
	_, err = watchCluster(ctx, s, c, o)
	return err
}

// watchCluster is demonstrate for a cluster that has not been started. It returns nil
// after an interrupt before the clients start. The functions in disturb run while the
// clients run.
func watchCluster(ctx context.Context, s *screen, c *cluster, o options, disturb ...func(context.Context, *watch) error) (w *watch, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case err := <-c.ended:
			cancel(err)
		case <-ctx.Done():
		}
	}()
	w = newWatch(s, c, o)
	defer w.load.http.CloseIdleConnections() // stopping nodes wait for these connections
	if err := w.open(ctx); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return w, unlessCanceled(err)
	}
	err = w.run(ctx, o, disturb)
	s.draw("")
	return w, errors.Join(err, w.report())
}

// unlessCanceled returns err, or nil if the user has interrupted the program.
func unlessCanceled(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// open starts the nodes and makes the first deposits.
func (w *watch) open(ctx context.Context) error {
	for _, n := range w.cluster.nodes {
		if err := w.cluster.start(ctx, n); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := w.load.open(ctx); err != nil {
		return err
	}
	b, err := w.reader.balances(ctx, "")
	w.total = b.Total // with -dir there may be earlier deposits
	w.load.began = time.Now()
	return err
}

// run returns when the time is over, after an interrupt, or when there is an error.
func (w *watch) run(ctx context.Context, o options, disturb []func(context.Context, *watch) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if o.runFor > 0 {
		timer := time.AfterFunc(o.runFor, func() { cancel(nil) })
		defer timer.Stop()
	}
	var others sync.WaitGroup
	parts := []func(context.Context) error{w.poll, w.audit, func(ctx context.Context) error { return w.kill(ctx, o) }}
	for _, f := range disturb {
		parts = append(parts, func(ctx context.Context) error { return f(ctx, w) })
	}
	for _, f := range parts {
		others.Go(func() {
			if err := f(ctx); err != nil {
				cancel(err)
			}
		})
	}
	others.Go(func() { w.checker.check(w.load.rounds) })
	err := w.load.run(ctx)
	w.took = time.Since(w.load.began)
	cancel(err)
	others.Wait()
	return unlessCanceled(context.Cause(ctx))
}

// report compares the nodes and prints the results.
func (w *watch) report() error {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	s, l := w.screen, w.load
	seconds := w.took.Seconds()
	s.print("%d transfers in %.1f s, %.0f/s; %d refused, %d reads; %d requests made again, %d of unknown outcome",
		l.transfers.Load(), seconds, float64(l.transfers.Load())/seconds, l.refused.Load(), l.reads.Load(), l.retries.Load(), l.unknown.Load())
	if list := w.recovered(); len(list) > 0 {
		s.print("%d kills; the next transfer was booked %v later (median), %v at most",
			w.kills, list[len(list)/2].Round(time.Millisecond), list[len(list)-1].Round(time.Millisecond))
	}
	err := w.compare(ctx)
	if err == nil {
		s.print("total %d, the same as at the beginning, and on each node", w.total)
	}
	v := &w.checker
	if v.failed != nil {
		return errors.Join(err, v.failed)
	}
	s.print("porcupine: %d operations in %d rounds: linearizable", v.operations, v.rounds)
	return err
}

// compare reads the balances from each node. The standing orders continue in the
// meantime.
func (w *watch) compare(ctx context.Context) error {
	var first balances
	for _, n := range w.cluster.nodes {
		url := n.serves()
		if url == "" {
			continue // the node was killed just before the end
		}
		c := w.load.newClient(0)
		c.urls = func() []string { return []string{url} }
		b, err := c.balances(ctx, "")
		if err != nil {
			return fmt.Errorf("%s cannot be read: %w", n.name, err)
		}
		if b.Total != w.total {
			return fmt.Errorf("the total on %s is %d, but it was %d at the beginning", n.name, b.Total, w.total)
		}
		if first.Accounts == nil {
			first = b
		}
		for branch, city := range cities {
			if got, want := centsOf(branch, b), centsOf(branch, first); got != want {
				return fmt.Errorf("%s has %v on %s, but %v on another node", city, got, n.name, want)
			}
		}
	}
	return nil
}
