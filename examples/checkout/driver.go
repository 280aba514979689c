package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"time"

	"github.com/topogen/topogen/runtime/pool"
)

// settings are the numbers of the demonstration.
type settings struct {
	orders, workers, kills int
	seed                   uint64
}

const (
	orderEvery = 80 * time.Millisecond
	customers  = 12
	// A kill comes after a pause of this length, and the process starts again after a
	// shorter one.
	killPauseMin, killPauseMax   = 300 * time.Millisecond, 900 * time.Millisecond
	startPauseMin, startPauseMax = 20 * time.Millisecond, 300 * time.Millisecond
	// patience is when the demonstration gives up.
	patience = 50 * time.Second
)

// demonstrate runs the processes, places orders, kills processes meanwhile, and checks the books.
func demonstrate(ctx context.Context, out io.Writer, s settings) (err error) {
	dir, err := os.MkdirTemp("", "checkout")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	w, err := openWorld(s.seed)
	if err != nil {
		return err
	}
	address, err := freeAddress()
	if err != nil {
		return err
	}
	environ := []string{worldVariable + "=" + w.url(), "TOPOGEN_DURABLE_STORE=http://" + address}
	victims := []*process{newProcess(dir, "server", nil, "-serve", dir, "-address", address)}
	for i := range s.workers {
		victims = append(victims, newProcess(dir, fmt.Sprintf("worker %d", i+1), environ, "-work"))
	}
	interrupted := ctx
	for _, p := range victims {
		if err := p.start(); err != nil {
			return err
		}
		defer func() {
			if killErr := p.kill(); interrupted.Err() == nil { // an interrupt of a terminal ends these processes, too
				err = errors.Join(err, killErr)
			}
		}()
	}
	if s.orders == 0 {
		fmt.Fprintf(out, "serving http://%s until an interrupt\n", address)
		<-ctx.Done()
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	began := time.Now()
	var killing sync.WaitGroup
	var killed map[string]int
	var killErr error
	killing.Go(func() { killed, killErr = killAll(ctx, out, victims, s) })
	receipts, err := placeOrders(ctx, "http://"+address, s.orders)
	killing.Wait()
	if err = errors.Join(err, killErr); err != nil {
		return err
	}
	return check(out, w, receipts, killed, time.Since(began))
}

// freeAddress is an address on which nothing listens. It is below the range for outgoing
// connections, so that none of them takes it while the server is down.
func freeAddress() (string, error) {
	const from, to, attempts = 20000, 30000, 1000
	for range attempts {
		address := fmt.Sprintf("127.0.0.1:%d", from+rand.IntN(to-from))
		if l, err := net.Listen("tcp", address); err == nil {
			return address, l.Close()
		}
	}
	return "", errors.New("there is no free port")
}

// killAll kills one process after the other, at random, and starts it again.
func killAll(ctx context.Context, out io.Writer, victims []*process, s settings) (killed map[string]int, err error) {
	random := rand.New(rand.NewPCG(s.seed, 1))
	pause := func(from, to time.Duration) {
		select {
		case <-time.After(from + time.Duration(random.Int64N(int64(to-from)))):
		case <-ctx.Done():
		}
	}
	killed = make(map[string]int)
	for n := 1; n <= s.kills && ctx.Err() == nil; n++ {
		pause(killPauseMin, killPauseMax)
		p := victims[0] // the server
		if random.IntN(3) > 0 {
			p = victims[1+random.IntN(len(victims)-1)]
		}
		if err := p.kill(); err != nil {
			return killed, err
		}
		killed[p.name]++
		fmt.Fprintf(out, "kill %2d: %s\n", n, p.name)
		pause(startPauseMin, startPauseMax)
		if err := p.start(); err != nil {
			return killed, err
		}
	}
	return killed, nil
}

// placeOrders places orders and waits for their receipts. It uses the senders of the topology,
// which does not run in this process.
func placeOrders(ctx context.Context, url string, n int) ([]Receipt, error) {
	t, err := New(Processors{}, pool.DurableStore(url))
	if err != nil {
		return nil, err
	}
	receipts, errs := make([]Receipt, n), make([]error, n)
	var waiting sync.WaitGroup
	for i := 0; i < n && ctx.Err() == nil; i++ {
		customer := i % customers
		order := PlaceOrder{Number: i, Customer: fmt.Sprintf("customer %d", customer), Card: fmt.Sprintf("card %d", customer), Item: "lamp", Cents: 100 + i}
		waiting.Go(func() {
			h, err := t.Shop().StartPlaceOrder(ctx, order)
			if err == nil {
				receipts[i], err = h.Wait(ctx)
			}
			if err != nil && ctx.Err() == nil {
				errs[i] = fmt.Errorf("order %d: %w", i, err)
			}
		})
		select {
		case <-time.After(orderEvery):
		case <-ctx.Done():
		}
	}
	waiting.Wait()
	return receipts, errors.Join(append(errs, ctx.Err())...)
}
