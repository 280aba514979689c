package scenarios

import (
	"context"
	"errors"

	"github.com/topogen/topogen/runtime/topo"
)

// Command tells a processor what to do with the message.
type Command struct{ Do string }

// The commands.
const (
	Work  = "work"  // send a report
	Fail  = "fail"  // return ErrTold
	Panic = "panic" // panic
	Hang  = "hang"  // do not return
	End   = "end"   // end without an error; Ping returns topo.Done
)

// ErrTold is the error of a processor that gets the command Fail.
var ErrTold = errors.New("told to fail")

// Report has the work of an instance since it was made.
type Report struct {
	From  string
	Works int
}

// Subject executes commands.
type Subject struct {
	name  string
	works int
	ended bool
}

// NewSubject makes a Subject.
func NewSubject(in topo.Instance) *Subject { return &Subject{name: in.Processor} }

// Hangs does not return. Tests with a Stepper replace it.
var Hangs = func(ctx context.Context) { <-ctx.Done() }

// ReceiveCommand executes a command.
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

// Batch is a Subject that can end without an error.
type Batch struct{ Subject }

// NewBatch makes a Batch.
func NewBatch(in topo.Instance) *Batch { return &Batch{*NewSubject(in)} }

// Ping returns topo.Done after the command End.
func (b *Batch) Ping() error {
	if b.ended {
		return topo.Done
	}
	return topo.Idle
}
