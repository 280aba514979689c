package fsm

import (
	"context"
	"errors"
	"math"
)

// Status is the state of a processor.
type Status struct {
	Running                          bool
	Cleaned, Applied, Committed, End uint64 // the borders, see Machine
}

// Status returns the current status of the processor.
func (p *Processor[S, U, R]) Status() Status {
	p.begin()
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Status{Running: p.running() == nil}
	if p.machine == nil {
		return s
	}
	s.Cleaned, s.Applied, s.Committed, s.End = p.machine.Borders()
	return s
}

// Propose applies an update after all updates that came before it, and commits them
// together. It returns the value that the update's method Update returned. An error
// means that the update was not applied. It is an error of the update or of this
// package, or the context's error if the context had ended before. The outcome is
// always known.
func (p *Processor[S, U, R]) Propose(ctx context.Context, update U) (R, error) {
	v, _, err := p.proposeFromCaller(ctx, &update)
	return v, err
}

// ProposeResult is like Propose, and also returns the number of the update. The error
// is also in the result.
func (p *Processor[S, U, R]) ProposeResult(ctx context.Context, update U) (Result[R], error) {
	v, index, err := p.proposeFromCaller(ctx, &update)
	return Result[R]{Value: v, Applied: Applied{Index: index, Err: err}}, err
}

// proposeFromCaller makes a proposal in a goroutine outside the pool.
func (p *Processor[S, U, R]) proposeFromCaller(ctx context.Context, update *U) (v R, index uint64, err error) {
	if err := ctx.Err(); err != nil {
		return v, 0, err
	}
	p.begin()
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.running(); err != nil {
		return v, 0, err
	}
	v, index, failed, err := p.propose(update)
	if err != nil {
		p.failed = err
		p.wake()
		return v, 0, err
	}
	return v, index, failed
}

// Read calls f with the state, after all updates that were committed before. f must not
// change the state or keep a pointer into it. Read also works before Start and after
// Close.
func (p *Processor[S, U, R]) Read(ctx context.Context, f func(*S)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.machine == nil {
		return errNoDefinition
	}
	f(p.machine.State())
	return nil
}

// running returns an error if nothing can be proposed.
func (p *Processor[S, U, R]) running() error {
	switch {
	case p.closed || p.failed != nil:
		return ErrStopped
	case p.host == nil:
		return ErrNotRunning
	}
	return nil
}

// propose applies all queued updates and then one more, and commits them together. v is
// the value of the update and index its number, or failed is its error. err is an error
// of another update, or a panic, and fails the instance.
func (p *Processor[S, U, R]) propose(update *U) (v R, index uint64, failed, err error) {
	if _, err := p.machine.Apply(math.MaxInt); err != nil {
		return v, 0, nil, err
	}
	copied := p.events.copyUpdate(update)
	w, err := p.machine.propose(update, Entry{Index: p.machine.end() + 1})
	switch {
	case err == nil:
		if copied != nil {
			p.events.put(p.machine.end(), copied, w)
			p.wake()
		}
		return w, p.machine.end(), nil, nil
	case errors.Is(err, ErrPanicked) || errors.Is(err, ErrChanged):
		return v, 0, nil, err
	}
	return v, 0, err, nil
}
