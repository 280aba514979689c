package table_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/cluster/table"
)

// TestLeaseIsLost stops the renewals of a lease in different ways. The holder sees the
// loss before another holder can get the lease.
func TestLeaseIsLost(t *testing.T) {
	errNetwork := errors.New("no connection")
	const ttl = 8 * time.Second
	for name, renew := range map[string]func(context.Context) (time.Time, error){
		"the renewals fail":            func(context.Context) (time.Time, error) { return time.Time{}, errNetwork },
		"the renewals get no answer":   func(ctx context.Context) (time.Time, error) { <-ctx.Done(); return time.Time{}, ctx.Err() },
		"another holder has the lease": func(context.Context) (time.Time, error) { return time.Time{}, table.ErrLeaseLost },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				l := table.NewLease("x", 1, nil)
				go l.Keep(renew, began, ttl, nil)
				time.Sleep(ttl / 8) // virtual time
				if err := l.Err(); err != nil {
					t.Fatalf("the lease ended early: %v", err)
				}
				<-l.Done()
				if err := l.Err(); !errors.Is(err, table.ErrLeaseLost) {
					t.Errorf("the lease ended with %v, want ErrLeaseLost", err)
				}
				if d := time.Since(began); d > ttl {
					t.Errorf("the holder saw the loss after %v, more than the ttl of %v", d, ttl)
				}
			})
		})
	}
}

// TestLeaseOfDeadHolder lets a process die with a lease: the next holder gets it after the
// ttl and the margin for clocks, and not before.
func TestLeaseOfDeadHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl = 5 * time.Second
		m := table.NewMemory()
		dead, other := m.Open(), m.Open()
		defer other.Close()
		l, err := dead.Acquire(t.Context(), "x", "n1", ttl)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute) // virtual time: the lease is renewed
		if err := l.Err(); err != nil {
			t.Fatalf("the lease was lost although its holder lives: %v", err)
		}
		if err := dead.Close(); err != nil {
			t.Fatal(err)
		}
		died := time.Now()
		next, err := other.Acquire(t.Context(), "x", "n2", ttl)
		if err != nil {
			t.Fatal(err)
		}
		if d := time.Since(died); d < ttl/2 || d > ttl+3*time.Second {
			t.Errorf("the next holder got the lease after %v, with a ttl of %v", d, ttl)
		}
		if next.Token <= l.Token {
			t.Errorf("the next token is %d after %d", next.Token, l.Token)
		}
		if err := next.Release(t.Context()); err != nil {
			t.Error(err)
		}
		synctest.Wait()
	})
}

// TestRenewalsThatRecover lets two renewals fail: the lease is not lost.
func TestRenewalsThatRecover(t *testing.T) {
	for name, fail := range map[string]func(context.Context) (time.Time, error){
		"an error":  func(context.Context) (time.Time, error) { return time.Time{}, errors.New("no connection") },
		"no answer": func(ctx context.Context) (time.Time, error) { <-ctx.Done(); return time.Time{}, ctx.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const ttl = 8 * time.Second
				failures := 2 // of four renewals within a ttl
				l := table.NewLease("x", 1, func(context.Context) error { return nil })
				go l.Keep(func(ctx context.Context) (time.Time, error) {
					if failures > 0 {
						failures--
						return fail(ctx)
					}
					return time.Now(), nil
				}, time.Now(), ttl, nil)
				time.Sleep(10 * ttl) // virtual time
				if err := l.Err(); err != nil {
					t.Errorf("two failed renewals have ended the lease: %v", err)
				}
				if err := l.Release(t.Context()); err != nil || !errors.Is(l.Err(), table.ErrReleased) {
					t.Errorf("Release returned %v, and the lease has the error %v", err, l.Err())
				}
			})
		})
	}
}

// TestRenewalsAreReported: the holder of a lease learns after each renewal until when it has the lease.
func TestRenewalsAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl = 8 * time.Second
		began := time.Now()
		l := table.NewLease("x", 1, nil)
		go l.Keep(func(context.Context) (time.Time, error) {
			if time.Since(began) > 5*time.Second {
				return time.Time{}, errors.New("no connection")
			}
			return time.Now(), nil
		}, began, ttl, nil)
		synctest.Wait()
		var until []time.Duration
		l.OnRenewal(func(at time.Time) { until = append(until, at.Sub(began)) })
		<-l.Done() // in virtual time, after two renewals
		if want := []time.Duration{ttl, ttl + 2*time.Second, ttl + 4*time.Second}; !slices.Equal(until, want) || time.Since(began) != want[2] {
			t.Errorf("the lease was lost after %v, and the holder had it until %v; want %v", time.Since(began), until, want)
		}
	})
}

// TestEndedLeaseIsNotRenewed: the holder of a lease that has ended learns of no renewal, so that its gate stays closed.
func TestEndedLeaseIsNotRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := table.NewLease("x", 1, func(context.Context) error { return nil })
		report := func(until time.Time) { t.Errorf("the holder has the lease for %v after its end", time.Until(until)) }
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		l.OnRenewal(report)
		l.Keep(nil, time.Now(), time.Second, nil) // an answer that was late
		l.OnRenewal(report)
	})
}
