// Package fair has instances that keep all workers busy with short handlers, and beside them
// everything else that a process does. It measures the delay of the latter.
package fair

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/topogen/topogen/bench/peers"
	"github.com/topogen/topogen/bench/work"
	"github.com/topogen/topogen/runtime/topo"
)

//go:generate go tool topogen build

// Job keeps a worker busy. The others hold the time at which they were sent.
type (
	Job    struct{}
	Sent   struct{ At time.Time }
	Served struct{ At time.Time }
	Slow   struct{ At time.Time }
)

// Busy does some work for each job and sends itself the next, until stop is set.
type Busy struct {
	steps int
	stop  *atomic.Bool
}

//go:noinline
func (b *Busy) ReceiveJob(m *Job, out *BusySender) {
	if !b.stop.Load() {
		work.Do(b.steps)
		out.SendJob(*m)
	}
}

// Feed sends messages from its Serve.
type Feed struct{ stop *atomic.Bool }

func (f *Feed) Serve(_ context.Context, out *FeedSender) error {
	for !f.stop.Load() {
		time.Sleep(peers.FairPause)
		if err := out.SendServed(Served{time.Now()}); err != nil {
			return err
		}
	}
	return nil
}

// Sink records the delays of messages from outside, of messages from a Serve and of ticks.
type Sink struct{ delays *peers.Delays }

func (s *Sink) ReceiveSent(m *Sent)     { s.delays.Record(peers.FairSend, m.At) }
func (s *Sink) ReceiveServed(m *Served) { s.delays.Record(peers.FairServe, m.At) }
func (s *Sink) ReceiveTick(m topo.Tick) { s.delays.Record(peers.FairTimer, m.Time) }

// Sleeper records the delay of each message and then blocks for a while.
type Sleeper struct{ delays *peers.Delays }

func (s *Sleeper) ReceiveSlow(m *Slow) {
	s.delays.Record(peers.FairBlocking, m.At)
	time.Sleep(peers.FairBlock)
}
