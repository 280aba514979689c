package table_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/cluster/table"
)

const renewedTTL = 6 * time.Second

// renewedLog is a log of a table with a network: requests and entries are late, and may be lost.
type renewedLog struct {
	*testing.T
	random *rand.Rand
	late   time.Duration // how late a message or an entry can be
	lost   float64       // probability that a message is lost
	skew   time.Duration // of the clocks of the proposers
	closed chan struct{}

	mu       sync.Mutex
	index    uint64
	now      int64
	state    *table.State
	replicas []*renewedReplica
	leases   []*renewedLease
	renewals int // entries with renewals
	owner    string
	taken    int // how often another holder has got a lease
}

// renewedReplica is the replica of a node, which applies the log later.
type renewedReplica struct {
	*table.Replica
	entries chan func()
	cut     atomic.Bool // no message reaches its node or comes from it
}

// renewedLease is a lease that was acquired, with the time until which its holder relies on it.
type renewedLease struct {
	*table.Lease
	holder string
	until  time.Time
}

func newRenewedLog(t *testing.T, seed uint64) *renewedLog {
	return &renewedLog{T: t, random: rand.New(rand.NewPCG(seed, 0)), state: table.NewState(), closed: make(chan struct{})}
}

// end ends the goroutines.
func (l *renewedLog) end() {
	close(l.closed)
	for _, r := range l.replicas {
		r.Fail(table.ErrClosed)
	}
}

// pause waits for a random time.
func (l *renewedLog) pause(most time.Duration) {
	l.mu.Lock()
	d := time.Duration(l.random.Int64N(int64(most) + 1))
	l.mu.Unlock()
	select {
	case <-time.After(d):
	case <-l.closed:
	}
}

func (l *renewedLog) chance(p float64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.random.Float64() < p
}

// replica returns the replica of another node. The log is still empty.
func (l *renewedLog) replica() *renewedReplica {
	r := &renewedReplica{Replica: table.NewReplica(), entries: make(chan func(), 10_000)}
	l.mu.Lock()
	l.replicas = append(l.replicas, r)
	l.mu.Unlock()
	go func() {
		for {
			select {
			case apply := <-r.entries:
				for r.cut.Load() {
					l.pause(100 * time.Millisecond)
				}
				apply()
			case <-l.closed:
				return
			}
		}
	}()
	return r
}

// propose appends a command, and waits until the replica of its node has applied it.
func (l *renewedLog) propose(ctx context.Context, r *renewedReplica, c *table.Command) (table.Outcome, error) {
	l.mu.Lock()
	at := time.Now().UnixNano() + l.random.Int64N(2*int64(l.skew)+1) - int64(l.skew)
	l.mu.Unlock()
	l.pause(l.late) // the entry is in the log after that
	l.mu.Lock()
	l.index++
	l.now = max(l.now, at)
	revision, now := table.Revision{Index: l.index}, l.now
	out, _ := l.state.Apply(revision, now, c)
	if c.Kind == table.CommandRenew {
		l.renewals++
	}
	if c.Kind == table.CommandAcquire && out.Err(c) == nil {
		l.check(c)
	}
	for _, r := range l.replicas {
		r.entries <- func() {
			l.pause(l.late / 4)
			r.Apply(revision, now, c)
		}
	}
	l.mu.Unlock()
	if err := r.Wait(ctx, revision); err != nil {
		return out, err
	}
	return out, nil
}

// check checks that no other holder relies on a lease when a holder gets it. The lock must be held.
func (l *renewedLog) check(c *table.Command) {
	if c.Holder != l.owner {
		l.owner = c.Holder
		l.taken++
	}
	for _, other := range l.leases {
		if left := time.Until(other.until); other.Name == c.Name && other.holder != c.Holder && other.Err() == nil && left > 0 {
			l.Errorf("%s has got the lease %q, on which %s relies for another %v", c.Holder, c.Name, other.holder, left)
		}
	}
}

// writer begins to put renewals together, on a node that is, or was, the leader.
func (l *renewedLog) writer(ctx context.Context) chan table.Renewal {
	asked, r := make(chan table.Renewal, 1000), l.replica()
	go r.RenewTogether(ctx, asked, func(ctx context.Context, c *table.Command) (table.Outcome, error) { return l.propose(ctx, r, c) })
	return asked
}

// acquire acquires a lease, whose renewals go to any of the writers.
func (l *renewedLog) acquire(ctx context.Context, r *renewedReplica, name, holder string, writers ...chan table.Renewal) (*renewedLease, error) {
	propose := func(ctx context.Context, c *table.Command) (table.Outcome, error) { return l.propose(ctx, r, c) }
	ask := func(_ context.Context, w table.Renewal) {
		go func() {
			if l.pause(l.late); !l.chance(l.lost) && !r.cut.Load() {
				l.mu.Lock()
				to := writers[l.random.IntN(len(writers))]
				l.mu.Unlock()
				to <- w
			}
		}()
	}
	acquired, err := table.AcquireWith(ctx, r.Replica, propose, ask, &table.Command{Kind: table.CommandAcquire, Name: name, Holder: holder, TTL: renewedTTL})
	if err != nil {
		return nil, err
	}
	o := &renewedLease{Lease: acquired, holder: holder}
	acquired.OnRenewal(func(until time.Time) {
		l.mu.Lock()
		defer l.mu.Unlock()
		o.until = until
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leases = append(l.leases, o)
	return o, nil
}

// TestRenewalsShareEntries: sixty nodes, which have started at different times, write one entry in a quarter of the time of
// a lease.
func TestRenewalsShareEntries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newRenewedLog(t, 1)
		l.late = 20 * time.Millisecond
		defer l.end()
		asked := l.writer(t.Context())
		const nodes = 60
		replicas := make([]*renewedReplica, nodes)
		for i := range replicas {
			replicas[i] = l.replica()
		}
		for i, r := range replicas {
			l.pause(100 * time.Millisecond)
			if _, err := l.acquire(t.Context(), r, fmt.Sprint("node ", i), fmt.Sprint(i), asked); err != nil {
				t.Fatal(err)
			}
		}
		l.mu.Lock()
		before := l.renewals
		l.mu.Unlock()
		time.Sleep(time.Minute) // virtual time
		l.mu.Lock()
		defer l.mu.Unlock()
		if n, want := l.renewals-before, int(time.Minute*4/renewedTTL); n < want-1 || n > want+1 {
			t.Errorf("%d nodes have written %d entries in a minute, want %d", nodes, n, want)
		}
		for _, o := range l.leases {
			if err := o.Err(); err != nil || time.Until(o.until) < renewedTTL/2 {
				t.Errorf("%s has its lease for %v, and the error %v", o.holder, time.Until(o.until), err)
			}
		}
	})
}

// TestLateRenewal: a renewal that comes late, after the holder has asked again, counts from the time at which the holder has asked
// for it.
func TestLateRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, index := table.NewReplica(), uint64(0)
		apply := func(_ context.Context, c *table.Command) (table.Outcome, error) {
			index++
			return r.Apply(table.Revision{Index: index}, time.Now().UnixNano(), c), nil
		}
		began := time.Now()
		const asked, late = renewedTTL / 4, 3200 * time.Millisecond
		var first sync.Once
		ask := func(ctx context.Context, w table.Renewal) {
			first.Do(func() {
				time.AfterFunc(late, func() {
					_, _ = apply(ctx, &table.Command{Kind: table.CommandRenew, Renewals: []table.Renewal{w}})
				})
			})
		}
		l, err := table.AcquireWith(t.Context(), r, apply, ask, &table.Command{Kind: table.CommandAcquire, Name: "x", Holder: "n1", TTL: renewedTTL})
		if err != nil {
			t.Fatal(err)
		}
		var until []time.Duration
		l.OnRenewal(func(at time.Time) { until = append(until, at.Sub(began)) })
		<-l.Done()
		if want := []time.Duration{renewedTTL, asked + renewedTTL}; !slices.Equal(until, want) || time.Since(began) != want[1] {
			t.Errorf("the holder had the lease until %v, and lost it after %v; want %v", until, time.Since(began), want)
		}
	})
}

// TestRenewalThatWasNotAskedFor: a renewal with a time that the holder has not reached, which another node has made up, gives
// the holder no time.
func TestRenewalThatWasNotAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newRenewedLog(t, 1)
		defer l.end()
		r := l.replica()
		asked := make(chan table.Renewal, 100)
		o, err := l.acquire(t.Context(), r, "x", "n1", asked)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, _ = l.propose(t.Context(), r, &table.Command{Kind: table.CommandRenew, Renewals: []table.Renewal{{Name: "x", Token: o.Token, Asked: time.Hour}}})
		<-o.Done()
		if d := time.Since(began); d > renewedTTL {
			t.Errorf("the holder had the lease for %v", d)
		}
	})
}

// TestOneHolderRelies: no holder relies on a lease after another one has got it, while messages and entries are late and lost,
// former leaders renew too, clocks are wrong, and holders are cut off.
func TestOneHolderRelies(t *testing.T) {
	first, end := speed.Seeds(t, 20, 200, 10_000)
	holders := 0
	for seed := first; seed < end; seed++ {
		ok := t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { holders += holdersTakeOver(t, seed) })
		})
		if !ok {
			return
		}
	}
	if holders < 3*int(end-first) {
		t.Errorf("the lease had only %d holders in %d runs", holders, end-first)
	}
}

// holdersTakeOver returns how many holders have had the lease, one after the other.
func holdersTakeOver(t *testing.T, seed uint64) int {
	l := newRenewedLog(t, seed)
	l.late = []time.Duration{0, 100 * time.Millisecond, time.Second, 4 * time.Second}[l.random.IntN(4)]
	l.lost = []float64{0, 0.3, 0.8}[l.random.IntN(3)]
	l.skew = 500 * time.Millisecond // see clockTolerance of runtime/raft
	ctx, stop := context.WithCancel(t.Context())
	writers := []chan table.Renewal{l.writer(ctx), l.writer(ctx)}
	var holders sync.WaitGroup
	replicas := []*renewedReplica{l.replica(), l.replica(), l.replica()}
	for i, r := range replicas {
		holders.Go(func() {
			for ctx.Err() == nil {
				o, err := l.acquire(ctx, r, "x", fmt.Sprint("n", i), writers...)
				if err != nil {
					if !errors.Is(err, table.ErrUnknown) && ctx.Err() == nil && !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
					continue
				}
				select {
				case <-o.Done():
				case <-time.After(time.Duration(5+10*i) * time.Second):
					r.cut.Store(i < 2)
					if i == 2 {
						_ = o.Release(ctx)
					}
					<-o.Done()
					l.pause(20 * time.Second)
					r.cut.Store(false)
				}
			}
		})
	}
	time.Sleep(3 * time.Minute) // virtual time
	stop()
	holders.Wait()
	l.end()
	return l.taken
}
