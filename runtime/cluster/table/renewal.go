package table

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// The times of renewals, as parts of each other.
const (
	renewals    = 4 // times that a lease is renewed within its ttl: two of them may fail, or get no answer until the next one is due
	repetitions = 4 // times that a holder asks for a renewal before the next one is due: its request may be lost with the leader
	windows     = 8 // a renewal waits for others for this part of the time until the next one: clocks of hosts usually differ by less than the 190 ms of a lease of 6 s
)

// Renewal renews a lease. It has no effect if the lease has another token.
type Renewal struct {
	Name  string
	Token uint64

	// Asked is when the holder has asked for it: the time since it asked for the lease, by its own clock. So a holder that
	// sees the renewal in its replica knows a time at which the table did not have it yet, also if the request or the
	// entry was late. The table does not use it.
	Asked time.Duration
}

// renew asks for a renewal until the replica has a later one than applied. It returns Asked of this one, which may
// be an earlier request than w.
func (r *Replica) renew(ctx context.Context, w Renewal, applied, ttl time.Duration, ask func(context.Context, Renewal)) (asked time.Duration, err error) {
	for {
		ask(ctx, w)
		limited, cancel := context.WithTimeout(ctx, ttl/renewals/repetitions)
		lost := false
		err := r.wait(limited, func() bool {
			o := r.state.leases[w.Name]
			if lost = o == nil || o.Token != w.Token; lost {
				return true
			}
			asked = o.asked
			return asked > applied && asked <= w.Asked
		})
		cancel()
		switch {
		case lost:
			return 0, fmt.Errorf("%w: the lease %q does not have the token %d any more", ErrLeaseLost, w.Name, w.Token)
		case err == nil:
			return asked, nil
		case ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded):
			return 0, err
		}
	}
}

// RenewTogether puts the renewals of several nodes into one command, until ctx ends, for engines. The holders ask at the same
// time, see [Lease.Keep], and ask again if a command fails.
func (r *Replica) RenewTogether(ctx context.Context, asked <-chan Renewal, propose Propose) {
	for {
		var due <-chan time.Time // of the command; nil: there is no renewal
		var limit time.Duration
		together := map[string]Renewal{}
		for waits := true; waits; {
			select {
			case <-ctx.Done():
				return
			case w := <-asked:
				ttl := r.ttl(w)
				if ttl == 0 {
					continue
				}
				if together[w.Name] = w; due == nil {
					limit = ttl / renewals
					due = time.After(limit / windows)
				}
			case <-due:
				waits = false
			}
		}
		limited, cancel := context.WithTimeout(ctx, limit)
		_, _ = propose(limited, &Command{Kind: CommandRenew, Renewals: slices.Collect(maps.Values(together))})
		cancel()
	}
}

// ttl returns the ttl of the lease of a renewal, or 0 if the lease has another token.
func (r *Replica) ttl(w Renewal) time.Duration {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if o := r.state.leases[w.Name]; o != nil && o.Token == w.Token {
		return o.ttl
	}
	return 0
}
