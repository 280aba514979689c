package fsm

import (
	"context"
	"errors"
	"sync"
	"time"
)

// updatesPerTurn bounds what a turn applies of [Updates], so that the other
// instances of a worker need not wait long.
const updatesPerTurn = 1024

// Host is what a processor asks of the pool that it runs in.
type Host interface {
	Owe()          // in a turn: the topology does not finish before as many calls of Paid
	Paid()         // in a turn
	Wake()         // from any goroutine: Answer is called in a turn, soon
	Stepped() bool // the whole topology runs in one goroutine
}

// Steps is what a [Host] has besides that may run under a Stepper.
type Steps interface {
	Clock
	Begin() // from any goroutine: under a Stepper all processors are started, if they were not
}

// Clock is that of the topology: under a Stepper the Stepper's.
type Clock interface{ Time() time.Time }

// Answers is how a processor sends along its edges to its controller.
type Answers[U, R any] interface {
	Outcome(Outcome[U, R])
	Upcoming(Upcoming[U])
}

// Processor is a [Machine] as a processor of a topology: what `kind: fsm` is
// without a log. [NewProcessor] makes one. Generated code calls Start, the Receive
// methods, Answer and Close, in turns of its instance. Propose, ProposeResult, Read
// and Status are for any goroutine, and not from within an update or the function of
// a Read.
type Processor[S, U, R any] struct {
	mu         sync.Mutex        // held by whoever is in the machine: a turn, or somebody from outside
	machine    *Machine[S, U, R] // nil: a zero Processor, which is none
	nextHost   Host              // the one that is to come
	host       Host              // nil before Start
	closed     bool
	answers    []answer[U, R] // not sent yet
	finishHeld bool           // Owe was called, and Paid was not
	woken      bool           // Wake was called, and Answer was not
	events     events[U, R]
	failed     error // a panic in somebody else's goroutine, for which the instance has to fail
}

type answer[U, R any] struct {
	outcome  Outcome[U, R]
	upcoming *Upcoming[U] // nil: it is an outcome
}

// NewProcessor returns a processor with a zero state. It panics where the definition
// has no Update.
func NewProcessor[S, U, R any](d Definition[S, U, R]) *Processor[S, U, R] {
	return &Processor[S, U, R]{machine: NewMachine(d)}
}

var errNoDefinition = errors.New("fsm: the processor must be made by NewProcessor, got a zero one")

// Join says which pool the processor is to run in: under a Stepper it can be used before
// the first step.
func (p *Processor[S, U, R]) Join(host Host) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.nextHost = host
}

// Start makes the processor ready, with the pool that it runs in.
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

// begin has the topology begin, where it runs under a Stepper and has not.
func (p *Processor[S, U, R]) begin() {
	p.mu.Lock()
	host, begun := p.nextHost, p.host != nil || p.closed
	p.mu.Unlock()
	if s, ok := host.(Steps); ok && !begun {
		s.Begin()
	}
}

// Close ends it. What it holds can still be read.
func (p *Processor[S, U, R]) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	return nil
}

// ReceiveProposal applies an update behind all that came before it, and commits
// these and it. The outcome is sent by Answer. An error is that of an earlier
// update, or a panic; the message may be given again.
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

// ReceiveUpdates adds updates. Answer applies them; but so many that they would
// become ever more are applied here, and an error is then that of an earlier update:
// the message may be given again.
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

// ReceiveCommit commits all updates that have come.
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

// ReceiveRevert drops and undoes what is not committed. After an error the message
// may be given again.
func (p *Processor[S, U, R]) ReceiveRevert(context.Context, *Revert) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.machine.Revert()
}

// Answer sends what is to be sent, and applies updates: as many as a turn should,
// and asks for another where some are left.
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
		p.host.Paid()
	}
	return nil
}

// answer keeps an answer for the next turn.
func (p *Processor[S, U, R]) answer(a answer[U, R]) {
	p.answers = append(p.answers, a)
	p.turn()
}

// turn asks for a turn, before which the topology does not finish.
func (p *Processor[S, U, R]) turn() {
	if !p.finishHeld {
		p.finishHeld = true
		p.host.Owe()
	}
	p.wake()
}

func (p *Processor[S, U, R]) wake() {
	if !p.woken {
		p.woken = true
		p.host.Wake()
	}
}
