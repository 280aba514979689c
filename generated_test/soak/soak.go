// Package soak has processors that fail in every way, over and over.
package soak

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"time"

	"github.com/topogen/topogen/runtime/topo"
)

// Job and Note are what is sent.
type (
	Job  struct{ N, Attempt int }
	Note struct{ N int }
)

var (
	errSoak = errors.New("soak: as it goes")
	hangs   atomic.Int64 // calls that were told that they are abandoned
)

// misbehave fails at some messages, once: by an error, a panic, or a hang that ends
// when the call is abandoned.
func misbehave(ctx context.Context, n, every int) error {
	if n%every != 0 || topo.Attempt(ctx) > 1 {
		return nil
	}
	switch n / every % 3 {
	case 0:
		return errSoak
	case 1:
		panic(errSoak)
	}
	<-ctx.Done()
	hangs.Add(1)
	return nil
}

// Near sends each job on in two ways.
type Near struct{}

// ReceiveJob sends before it may fail, and after.
func (*Near) ReceiveJob(ctx context.Context, j Job, out *NearSender) error {
	out.SendNote(Note{j.N})
	if err := misbehave(ctx, j.N, 997); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if j.N%50 == 0 {
		out.SendJobToFar(j)
	}
	out.SendJobToSlow(j)
	return nil
}

// Slow has a goroutine of its own.
type Slow struct{ release func() }

// ReceiveJob holds one job in a while, until the next tick.
func (s *Slow) ReceiveJob(ctx context.Context, j Job, out *SlowSender) error {
	if err := misbehave(ctx, j.N, 1499); err != nil {
		return err
	}
	if j.N%100 == 0 && s.release == nil {
		s.release = topo.Hold(ctx)
	}
	out.SendJob(j)
	return nil
}

// ReceiveNote does nothing: the oldest are dropped.
func (*Slow) ReceiveNote(Note) {}

// ReceiveTick releases.
func (s *Slow) ReceiveTick(topo.Tick) {
	if s.release != nil {
		s.release()
		s.release = nil
	}
}

// Far is killed, and ends by itself now and then.
type Far struct{}

// ReceiveJob sends a note before it may end the process.
func (*Far) ReceiveJob(ctx context.Context, j Job, out *FarSender) error {
	out.SendNote(Note{j.N})
	if topo.Attempt(ctx) > 1 {
		return nil
	}
	switch j.N / 50 % 200 {
	case 7:
		return errSoak
	case 17:
		os.Exit(3)
	case 27:
		time.Sleep(time.Hour) // until the process is killed
	}
	return nil
}

// Sink takes all.
type Sink struct{}

// ReceiveNote and ReceiveJob do nothing.
func (Sink) ReceiveNote(Note) {}
func (Sink) ReceiveJob(Job)   {}

// Morgue takes dead letters.
type Morgue struct{}

// ReceiveDeadLetter does nothing.
func (Morgue) ReceiveDeadLetter(topo.DeadLetter) {}
