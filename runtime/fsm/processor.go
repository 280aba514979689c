package fsm

import (
	"context"
	"errors"
	"sync"
	"time"
)

// updatesPerTurn limits how many updates of [Updates] a turn applies, so that the other
// instances of the worker do not wait long.
const updatesPerTurn = 1024

// Host is the pool that a processor runs in.
type Host interface {
	BeginReply()   // in a turn: the topology does not finish before EndReply was called as often
	EndReply()     // in a turn: ends a BeginReply
	Wake()         // from any goroutine: Answer will soon be called in a turn
	Stepped() bool // the whole topology runs in one goroutine
}

// Steps is implemented by a [Host] that may run under a Stepper.
type Steps interface {
	Clock
	Begin() // from any goroutine: under a Stepper, starts all processors that are not started
}

// Clock is the clock of the topology. Under a Stepper it is the Stepper's clock.
type Clock interface{ Time() time.Time }

// Answers sends along the edges of a processor to its controller.
type Answers[U, R any] interface {
	Outcome(Outcome[U, R])
	Upcoming(Upcoming[U])
}

// Processor runs a [Machine] as a processor of a topology: it is `kind: fsm` without a
// log. [NewProcessor] makes one. Generated code calls Start, the Receive methods,
// Answer and Close in turns of the instance. Propose, ProposeResult, Read and Status
// may be called from any goroutine, but not in an update or in the function of a Read.
type Processor[S, U, R any] struct {
	mu         sync.Mutex        // held while machine is used, by a turn or by a caller
	machine    *Machine[S, U, R] // nil: the Processor was not made by NewProcessor
	nextHost   Host              // set by Join, before Start
	host       Host              // nil before Start
	closed     bool
	answers    []answer[U, R] // not sent yet
	finishHeld bool           // BeginReply was called, and EndReply not yet
	woken      bool           // Wake was called, and Answer not yet
	events     events[U, R]
	failed     error // an error or a panic in a caller's goroutine: the next turn fails the instance
}

type answer[U, R any] struct {
	outcome  Outcome[U, R]
	upcoming *Upcoming[U] // nil: the answer is an outcome
}

// NewProcessor returns a processor with a zero state. It panics if the definition has
// no Update.
func NewProcessor[S, U, R any](d Definition[S, U, R]) *Processor[S, U, R] {
	return &Processor[S, U, R]{machine: NewMachine(d)}
}

var errNoDefinition = errors.New("fsm: the processor must be made by NewProcessor, got a zero Processor")

// Join sets the pool that the processor will run in. Under a Stepper this allows
// proposals before the first step.
func (p *Processor[S, U, R]) Join(host Host) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.nextHost = host
}

// Start makes the processor ready and sets the pool that it runs in.
func (p *Processor[S, U, R]) Start(_ context.Context, host Host) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.machine == nil {
		return errNoDefinition
	}
	p.host = host
	if p.events.leadershipDue {
		p.wake()
	}
	if c, ok := host.(Clock); ok {
		p.machine.clock = c.Time
	}
	return nil
}

// begin starts the topology if it runs under a Stepper and has not started.
func (p *Processor[S, U, R]) begin() {
	p.mu.Lock()
	host, begun := p.nextHost, p.host != nil || p.closed
	p.mu.Unlock()
	if s, ok := host.(Steps); ok && !begun {
		s.Begin()
	}
}

// Close stops the processor. Its state can still be read.
func (p *Processor[S, U, R]) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	return nil
}

// ReceiveProposal applies an update after all updates that came before it, and commits
// them together. Answer sends the outcome. An error is the error of an earlier update,
// or a panic. The message may be handled again.
func (p *Processor[S, U, R]) ReceiveProposal(_ context.Context, m *Proposal[U]) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	update := m.Update
	v, index, failed, err := p.propose(&update)
	if err != nil {
		return err
	}
	p.answer(answer[U, R]{outcome: Outcome[U, R]{Proposer: m.Proposer, Update: update, Value: v, Applied: Applied{Index: index, Err: failed}}})
	return nil
}

// ReceiveUpdates adds updates. Answer applies them. If too many are queued,
// ReceiveUpdates applies the surplus itself, so that the queue does not grow without
// limit. An error is then the error of an earlier update. The message may be handled
// again.
func (p *Processor[S, U, R]) ReceiveUpdates(_ context.Context, m *Updates[U]) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if wait := p.machine.end() - p.machine.applied; wait > updatesPerTurn {
		if _, err := p.machine.Apply(int(wait - updatesPerTurn)); err != nil {
			return err
		}
	}
	p.machine.Add(m.Updates...)
	p.turn()
	return nil
}

// ReceiveCommit commits all updates that were received.
func (p *Processor[S, U, R]) ReceiveCommit(context.Context, *Commit) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.machine.Commit()
	p.machine.Cleanup()
	return nil
}

// ReceiveGetUpcoming answers with the updates that are not committed.
func (p *Processor[S, U, R]) ReceiveGetUpcoming(_ context.Context, m *GetUpcoming) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer(answer[U, R]{upcoming: &Upcoming[U]{Proposer: m.Proposer, Updates: p.machine.Upcoming()}})
	return nil
}

// ReceiveRevert drops and undoes the updates that are not committed. After an error the
// message may be handled again.
func (p *Processor[S, U, R]) ReceiveRevert(context.Context, *Revert) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.machine.Revert()
}

// Answer sends the queued answers and events, and applies updates. It does as much as
// fits into a turn, and requests another turn if updates or events are left.
func (p *Processor[S, U, R]) Answer(to Answers[U, R]) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.woken = false
	allSent := p.events.send()
	for i := range p.answers {
		if a := &p.answers[i]; a.upcoming != nil {
			to.Upcoming(*a.upcoming)
		} else {
			to.Outcome(a.outcome)
		}
	}
	clear(p.answers)
	p.answers = p.answers[:0]
	if err := p.failed; err != nil {
		p.failed = nil
		return err
	}
	if _, err := p.machine.Apply(updatesPerTurn); err != nil {
		return err
	}
	if p.machine.applied < p.machine.end() {
		p.wake()
		return nil
	}
	if !allSent {
		p.wake()
	}
	if p.finishHeld {
		p.finishHeld = false
		p.host.EndReply()
	}
	return nil
}

// answer keeps an answer for the next turn.
func (p *Processor[S, U, R]) answer(a answer[U, R]) {
	p.answers = append(p.answers, a)
	p.turn()
}

// turn requests a turn and keeps the topology from finishing before it.
func (p *Processor[S, U, R]) turn() {
	if !p.finishHeld {
		p.finishHeld = true
		p.host.BeginReply()
	}
	p.wake()
}

func (p *Processor[S, U, R]) wake() {
	if !p.woken {
		p.woken = true
		p.host.Wake()
	}
}
