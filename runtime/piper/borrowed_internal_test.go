package piper

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestTheMonitorSeesBorrowedWorkers checks that the monitor does not fall asleep while a goroutine that asks
// runs a worker.
func TestTheMonitorSeesBorrowedWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := New(Spec{
			Name: "test", Batch: 256, DrainTimeout: time.Minute, Processors: []Processor{{Name: "p"}},
			Edges: []Edge{{From: -1, To: 0, Message: "Tick", Capacity: 1, Every: time.Hour}},
		}, Workers(2))
		if err != nil {
			t.Fatal(err)
		}
		var cell struct {
			unit Unit
			out  Out
		}
		p.Adopt(0, &cell, &cell.unit, &cell.out)
		new(Ticker).Start(Drain(func(int) (int, error) { return 0, nil }), &cell.unit, 0)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Run(ctx) }()
		synctest.Wait()
		w := p.workers[0]
		if !w.borrow() {
			t.Fatal("the worker cannot be borrowed")
		}
		if p.monitor.fallAsleep() {
			t.Error("the monitor falls asleep while a goroutine runs a worker that it has borrowed")
		}
		w.giveBack()
		time.Sleep(2 * monitorIdleMax * monitorPeriod) // in virtual time
		synctest.Wait()
		if !p.monitor.asleep.Load() {
			t.Error("the monitor is awake although no worker runs")
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
