package peers

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/topogen/topogen/bench/work"
)

const (
	FairPause  = time.Millisecond       // between two messages of a kind, and the period of the timer
	FairBlock  = 200 * time.Microsecond // in the handler that blocks
	fairWarmUp = 50 * time.Millisecond  // not measured: until all busy goroutines run
	fairJobs   = 128                    // of each busy goroutine
)

// The kinds of messages and calls whose delay beside busy workers is measured.
const (
	FairSend = iota
	FairServe
	FairBlocking
	FairHealth
	FairTimer
	FairKinds
)

// Delays are the delays of each kind, in nanoseconds. Different goroutines may record different kinds.
type Delays struct {
	kinds [FairKinds]struct {
		nanos []float64
		_     [64]byte // the next kind belongs to another goroutine
	}
	measures atomic.Bool
}

// Of returns the delays of a kind.
func (d *Delays) Of(kind int) []float64 { return d.kinds[kind].nanos }

// Record records the time since at.
func (d *Delays) Record(kind int, at time.Time) {
	if took := time.Since(at); d.measures.Load() {
		k := &d.kinds[kind]
		k.nanos = append(k.nanos, float64(took))
	}
}

// Probes are what Probe calls.
type Probes struct {
	Send, Blocking func() error
	Health         func()
}

// Probe calls each of the functions again and again, each on a goroutine of its own, and measures for the given time.
// A health check is late from the time for which its timer was set.
func (d *Delays) Probe(measured time.Duration, p Probes) error {
	var all sync.WaitGroup
	var stop atomic.Bool
	failed := make(chan error, 2)
	for _, send := range []func() error{p.Send, p.Blocking} {
		all.Go(func() {
			for !stop.Load() {
				time.Sleep(FairPause)
				if err := send(); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	all.Go(func() {
		onTime(&stop, func(due time.Time) {
			p.Health()
			d.Record(FairHealth, due)
		})
	})
	time.Sleep(fairWarmUp)
	d.measures.Store(true)
	time.Sleep(measured)
	d.measures.Store(false)
	stop.Store(true)
	all.Wait()
	if len(failed) > 0 {
		return <-failed
	}
	return nil
}

// onTime calls f every FairPause, with the time at which the call was due.
func onTime(stop *atomic.Bool, f func(due time.Time)) {
	for !stop.Load() {
		due := time.Now().Add(FairPause)
		time.Sleep(FairPause)
		f(due)
	}
}

// ChannelFair measures the same with goroutines and channels, beside busy goroutines with jobs of the given steps.
func ChannelFair(measured time.Duration, busy, steps int) (*Delays, error) {
	var stop atomic.Bool
	var handlers, senders sync.WaitGroup
	d := new(Delays)
	handled := make([]atomic.Int64, busy)
	for i := range busy {
		handlers.Go(func() {
			jobs := make(chan struct{}, capacity)
			for range fairJobs {
				jobs <- struct{}{}
			}
			for job := range jobs {
				if stop.Load() {
					return
				}
				work.Do(steps)
				handled[i].Add(1)
				jobs <- job
			}
		})
	}
	sent, served, slow := make(chan time.Time, capacity), make(chan time.Time, capacity), make(chan time.Time, capacity)
	receive := func(kind int, in chan time.Time, then func()) {
		handlers.Go(func() {
			for at := range in {
				d.Record(kind, at)
				then()
			}
		})
	}
	receive(FairSend, sent, func() {})
	receive(FairServe, served, func() {})
	receive(FairBlocking, slow, func() { time.Sleep(FairBlock) })
	senders.Go(func() {
		onTime(&stop, func(time.Time) { served <- time.Now() })
	})
	senders.Go(func() {
		onTime(&stop, func(due time.Time) { d.Record(FairTimer, due) })
	})
	err := d.Probe(measured, Probes{
		Send:     func() error { sent <- time.Now(); return nil },
		Blocking: func() error { slow <- time.Now(); return nil },
		Health: func() {
			for i := range handled {
				handled[i].Load()
			}
		},
	})
	stop.Store(true)
	senders.Wait()
	close(sent)
	close(served)
	close(slow)
	handlers.Wait()
	return d, err
}
