package scenarios

import (
	"context"
	"errors"

	"github.com/topogen/topogen/runtime/topo"
)

// Command tells a processor what to do with the message.
type Command struct{ Do string }

// What a processor may be told.
const (
	Work  = "work"  // send a report
	Fail  = "fail"  // return ErrTold
	Panic = "panic" // panic
	Hang  = "hang"  // not return
	End   = "end"   // come to a clean end, as Ping says
)

// ErrTold is what a processor fails with that is told to.
var ErrTold = errors.New("told to fail")

// Report tells what an instance has done since it was made.
type Report struct {
	From  string
	Works int
}

// Subject does what it is told.
type Subject struct {
	name  string
	works int
	ended bool
}

// NewSubject makes one that has done nothing yet.
func NewSubject(in topo.Instance) *Subject { return &Subject{name: in.Processor} }

// Hangs does not return. Under a Stepper something else takes its place.
var Hangs = func(ctx context.Context) { <-ctx.Done() }

// ReceiveCommand does what m says.
func (s *Subject) ReceiveCommand(ctx context.Context, m Command, out interface{ SendReport(Report) }) error {
	switch m.Do {
	case Fail:
		return ErrTold
	case Panic:
		panic(ErrTold)
	case Hang:
		Hangs(ctx)
	case End:
		s.ended = true
	default:
		s.works++
		out.SendReport(Report{s.name, s.works})
	}
	return nil
}

// Batch is a Subject that can come to a clean end.
type Batch struct{ Subject }

// NewBatch makes one that has done nothing yet.
func NewBatch(in topo.Instance) *Batch { return &Batch{*NewSubject(in)} }

// Ping says whether it has.
func (b *Batch) Ping() error {
	if b.ended {
		return topo.Done
	}
	return topo.Idle
}
