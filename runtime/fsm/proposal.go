package fsm

import (
	"context"
	"errors"
	"math"
)

// Status says how a processor stands.
type Status struct {
	Running                          bool
	Cleaned, Applied, Committed, End uint64 // the machine's borders
}

// Status returns how the processor stands.
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

// Propose applies an update behind all that came before it, and commits these and
// it. It returns what the update's method Update has returned. The error says why it
// was not applied: that of the update, or one of this package; or the context's, where
// it had ended before. The outcome is always known.
func (p *Processor[S, U, R]) Propose(ctx context.Context, update U) (R, error) {
	v, _, err := p.proposeFromCaller(ctx, &update)
	return v, err
}

// ProposeResult is Propose, and says as well which number the update has. The error
// is also in the result.
func (p *Processor[S, U, R]) ProposeResult(ctx context.Context, update U) (Result[R], error) {
	v, index, err := p.proposeFromCaller(ctx, &update)
	return Result[R]{Value: v, Applied: Applied{Index: index, Err: err}}, err
}

// outside is a proposal in the goroutine of another than a turn.
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

// Read calls f with the state, behind all that was committed before. f keeps no
// pointer into the state and changes nothing in it. Before Start and after Close it
// can be read too.
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

// running says why nothing can be proposed, if so.
func (p *Processor[S, U, R]) running() error {
	switch {
	case p.closed || p.failed != nil:
		return ErrStopped
	case p.host == nil:
		return ErrNotRunning
	}
	return nil
}

// propose applies all that waits, and then one update, which it commits with them: v
// is its value and index its number, or failed its error. err is an error of another
// update, or a panic, for which the instance fails.
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
