// Package soak has processors that fail repeatedly in every way.
package soak

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"time"

	"github.com/topogen/topogen/runtime/topo"
)

// Job and Note are messages.
type (
	Job  struct{ N, Attempt int }
	Note struct{ N int }
)

var (
	errSoak = errors.New("soak: expected fault")
	Hangs   atomic.Int64 // hanging calls whose context has ended
)

// misbehave fails once at some messages: by an error, a panic, or a hang until the call is
// abandoned.
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
	Hangs.Add(1)
	return nil
}

// Near sends each job on along two edges.
type Near struct{}

// ReceiveJob sends before and after a possible failure.
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

// ReceiveJob sometimes holds a job until the next tick.
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

// ReceiveNote ignores the note. Its queue drops the oldest notes.
func (*Slow) ReceiveNote(Note) {}

// ReceiveTick releases the hold.
func (s *Slow) ReceiveTick(topo.Tick) {
	if s.release != nil {
		s.release()
		s.release = nil
	}
}

// Far is killed, and sometimes ends itself.
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

// Sink receives jobs and notes.
type Sink struct{}

// ReceiveNote and ReceiveJob do nothing.
func (Sink) ReceiveNote(Note) {}
func (Sink) ReceiveJob(Job)   {}

// Morgue takes dead letters.
type Morgue struct{}

// ReceiveDeadLetter does nothing.
func (Morgue) ReceiveDeadLetter(topo.DeadLetter) {}
