package table

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Lease is a lease that this process holds. Its token grows with each acquisition of a
// lease, so a service can refuse a request with a lower token than an earlier one. Within
// the table, the guard [LeaseIs] does this.
type Lease struct {
	Name  string
	Token uint64

	release func(ctx context.Context) error
	done    chan struct{}
	err     error

	mu      sync.Mutex
	until   time.Time             // it is lost then, unless it is renewed
	renewed func(until time.Time) // may be nil
}

// NewLease returns a lease, for engines. release asks the engine to release it.
func NewLease(name string, token uint64, release func(ctx context.Context) error) *Lease {
	return &Lease{Name: name, Token: token, release: release, done: make(chan struct{})}
}

// Done returns a channel that is closed when the lease has ended: it was lost or released.
func (l *Lease) Done() <-chan struct{} { return l.done }

// Err returns why the lease has ended: an error that matches ErrLeaseLost or ErrReleased.
// It returns nil while the lease is held.
func (l *Lease) Err() error {
	select {
	case <-l.done:
		return l.err
	default:
		return nil
	}
}

// OnRenewal calls f with the time at which the lease is lost unless it is renewed, by the clock of this process: now, and
// after each renewal, but not after the lease has ended. f must not wait, and must not call methods of the lease.
func (l *Lease) OnRenewal(f func(until time.Time)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewed = f
	if !l.until.IsZero() && l.Err() == nil {
		f(l.until)
	}
}

// renew notes a renewal. After the end it has no effect.
func (l *Lease) renew(until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.until = until; l.renewed != nil && l.Err() == nil {
		l.renewed(until)
	}
}

// End ends the lease here, for engines. Only the first call has an effect.
func (l *Lease) End(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Err() == nil {
		l.err = err
		close(l.done)
	}
}

// Release ends the lease, so that another holder can acquire it at once. It returns an
// error if the table does not know of the release; then the lease expires after its ttl.
func (l *Lease) Release(ctx context.Context) error {
	if err := l.Err(); err != nil {
		return errIf(!errors.Is(err, ErrReleased), err)
	}
	l.End(fmt.Errorf("%w: %q", ErrReleased, l.Name))
	return l.release(ctx)
}

// Propose appends a command to the log of a table, and returns its outcome when the
// replica of this node has applied it.
type Propose func(ctx context.Context, c *Command) (Outcome, error)

// AcquireWith implements Acquire of [Table] with commands in the log. ask asks for a renewal: the log
// gets it soon, or never.
func AcquireWith(ctx context.Context, r *Replica, propose Propose, ask func(context.Context, Renewal), c *Command) (*Lease, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	for {
		began := time.Now()
		out, err := propose(ctx, c)
		if err != nil {
			return nil, err
		}
		if out.Code == codeApplied {
			l := NewLease(c.Name, out.Number, nil)
			l.release = func(ctx context.Context) error {
				release := &Command{Kind: CommandRelease, Name: l.Name, Token: l.Token}
				out, err := propose(ctx, release)
				if err != nil {
					return err
				}
				return out.Err(release)
			}
			applied := time.Duration(0) // Asked of the last renewal that was applied
			go l.Keep(func(ctx context.Context) (time.Time, error) {
				asked, err := r.renew(ctx, Renewal{l.Name, l.Token, time.Since(began)}, applied, c.TTL, ask)
				applied = max(applied, asked)
				return began.Add(asked), err
			}, began, c.TTL, r.Done())
			return l, nil
		}
		err = out.Err(c)
		if !errors.Is(err, ErrHeld) {
			return nil, err
		}
		if waited := r.waitReleased(ctx, c.Name, time.Duration(out.Number)); waited != nil {
			return nil, fmt.Errorf("%w: %w", err, waited)
		}
	}
}

// waitReleased waits until a lease has no holder, or until it may have expired.
func (r *Replica) waitReleased(ctx context.Context, name string, expires time.Duration) error {
	limited, cancel := context.WithTimeout(ctx, max(expires, time.Millisecond))
	defer cancel()
	err := r.wait(limited, func() bool { return r.state.leases[name] == nil })
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// Keep renews the lease until it ends, for engines. renew returns a time at which the table had not
// renewed the lease yet, by the clock of this process, or an error. If this matches
// ErrLeaseLost, the lease cannot be renewed any more. The context of renew ends when the next
// renewal is due. The lease is lost when the ttl has passed since the last time that renew has returned; the
// first time is renewed. closed ends the lease.
//
// The time of day decides when a lease is renewed. So the renewals of all nodes come at the same time, and an
// engine can write them together.
func (l *Lease) Keep(renew func(ctx context.Context) (since time.Time, err error), renewed time.Time, ttl time.Duration, closed <-chan struct{}) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	l.renew(renewed.Add(ttl))
	every := ttl / renewals
	type result struct {
		since time.Time
		err   error
	}
	results := make(chan result, 1)
	expire := time.NewTimer(time.Until(renewed.Add(ttl)))
	defer expire.Stop()
	next := time.NewTimer(untilMultiple(every))
	defer next.Stop()
	var began time.Time
	for {
		select {
		case <-l.done:
			return
		case <-closed:
			l.End(fmt.Errorf("%w: %q: the table was closed", ErrLeaseLost, l.Name))
		case <-expire.C:
			l.End(fmt.Errorf("%w: %q was not renewed within %v", ErrLeaseLost, l.Name, ttl))
		case <-next.C:
			began = time.Now()
			go func() {
				limited, cancel := context.WithTimeout(ctx, every)
				defer cancel()
				since, err := renew(limited)
				results <- result{since, err}
			}()
		case r := <-results:
			pause := time.Until(began.Add(every))
			switch {
			case errors.Is(r.err, ErrLeaseLost):
				l.End(r.err)
			case r.err == nil:
				expire.Reset(time.Until(r.since.Add(ttl)))
				l.renew(r.since.Add(ttl))
				pause = untilMultiple(every)
			}
			next.Reset(pause)
		}
	}
}

// untilMultiple returns the time until the time of day is a multiple of d.
func untilMultiple(d time.Duration) time.Duration {
	return d - time.Duration(time.Now().UnixNano())%d
}
