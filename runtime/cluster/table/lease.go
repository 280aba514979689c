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
	once    sync.Once
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
// after each renewal. f must not wait.
func (l *Lease) OnRenewal(f func(until time.Time)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewed = f
	if !l.until.IsZero() {
		f(l.until)
	}
}

// renew notes a renewal.
func (l *Lease) renew(until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.until = until; l.renewed != nil {
		l.renewed(until)
	}
}

// End ends the lease here, for engines. Only the first call has an effect.
func (l *Lease) End(err error) {
	l.once.Do(func() {
		l.err = err
		close(l.done)
	})
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

// renewals is how many times a lease is renewed within its ttl. Two of them may fail, or
// get no answer until the next one is due.
const renewals = 4

// AcquireWith implements Acquire of [Table] with commands in the log. closed ends the
// lease when the table ends.
func AcquireWith(ctx context.Context, r *Replica, propose Propose, closed <-chan struct{}, c *Command) (*Lease, error) {
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
			renew := &Command{Kind: CommandRenew, Name: l.Name, Token: l.Token}
			go l.Keep(func(ctx context.Context) error {
				out, err := propose(ctx, renew)
				if err == nil {
					err = out.Err(renew)
				}
				return err
			}, began, c.TTL, closed)
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

// Keep renews the lease until it ends, for engines. renew returns an error that matches
// ErrLeaseLost if the lease cannot be renewed any more. Its context ends when the next
// renewal is due. The lease is lost when the ttl has
// passed since the last successful call of renew began, by the clock of this process; the
// first time is renewed. closed ends the lease.
func (l *Lease) Keep(renew func(ctx context.Context) error, renewed time.Time, ttl time.Duration, closed <-chan struct{}) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	l.renew(renewed.Add(ttl))
	every := ttl / renewals
	results := make(chan error, 1)
	expire := time.NewTimer(time.Until(renewed.Add(ttl)))
	defer expire.Stop()
	next := time.NewTimer(every)
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
				results <- renew(limited)
			}()
		case err := <-results:
			switch {
			case errors.Is(err, ErrLeaseLost):
				l.End(err)
			case err == nil:
				expire.Reset(time.Until(began.Add(ttl)))
				l.renew(began.Add(ttl))
			}
			next.Reset(time.Until(began.Add(every)))
		}
	}
}
