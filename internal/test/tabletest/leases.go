package tabletest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/cluster/table"
)

// ttl is the ttl of the leases in the tests. It is much longer than an election of a new
// leader takes, also while other tests use the processors.
const ttl = 4 * time.Second

func (s *suite) acquire(node, name string) *table.Lease {
	s.Helper()
	l, err := s.node(node).Acquire(s.ctx, name, node, ttl)
	if err != nil {
		s.Fatalf("%s cannot acquire the lease %q: %v", node, name, err)
	}
	return l
}

// held tries to acquire a lease that another node has, until the answer is ErrHeld. If the
// answer does not come in time, it tries again with more time.
func (s *suite) held(node, name string) {
	s.Helper()
	for patience := 200 * time.Millisecond; s.ctx.Err() == nil; patience *= 2 {
		soon, cancel := context.WithTimeout(s.ctx, patience)
		l, err := s.node(node).Acquire(soon, name, node, ttl)
		cancel()
		switch {
		case errors.Is(err, table.ErrHeld):
			return
		case l != nil || !errors.Is(err, context.DeadlineExceeded):
			s.Fatalf("a second holder got the lease %+v and the error %v, want ErrHeld", l, err)
		}
	}
	s.Fatal("the answer ErrHeld did not come")
}

// leaseHasOneHolder checks that a second holder waits until the first one has released the
// lease.
func leaseHasOneHolder(t *testing.T, s *suite) {
	s.bootstrap()
	first := s.acquire("n1", "rebalance")
	if err := first.Err(); err != nil {
		t.Fatal(err)
	}
	s.held("n2", "rebalance")
	other := s.acquire("n2", "another")
	waiting := make(chan *table.Lease, 1)
	go func() {
		l, err := s.node("n2").Acquire(s.ctx, "rebalance", "n2", ttl)
		if err != nil {
			t.Errorf("the lease was released, but the next holder got %v", err)
		}
		waiting <- l
	}()
	if err := first.Release(s.ctx); err != nil {
		t.Fatal(err)
	}
	if err := first.Err(); !errors.Is(err, table.ErrReleased) {
		t.Errorf("the released lease has the error %v, want ErrReleased", err)
	}
	if l := <-waiting; l == nil || l.Token <= first.Token {
		t.Errorf("the second lease is %+v, want a token above %d", l, first.Token)
	}
	if err := other.Release(s.ctx); err != nil {
		t.Error(err)
	}
}

// leaseFencesTransactions checks that a previous holder cannot change the table.
func leaseFencesTransactions(t *testing.T, s *suite) {
	s.bootstrap()
	first := s.acquire("n1", "rebalance")
	guard := func(l *table.Lease) []table.Guard {
		return []table.Guard{table.LeaseIs{Name: l.Name, Token: l.Token}}
	}
	s.txn(s.node("n1"), guard(first), table.Assign{Processor: "counter", First: 0, Count: 1, Node: "n2"})
	if err := first.Release(s.ctx); err != nil {
		t.Fatal(err)
	}
	s.refused(s.node("n1"), table.ErrGuard, guard(first), table.Assign{Processor: "counter", First: 0, Count: 1, Node: "n3"})
	second := s.acquire("n2", "rebalance")
	s.refused(s.node("n1"), table.ErrGuard, guard(first), table.Assign{Processor: "counter", First: 0, Count: 1, Node: "n3"})
	s.txn(s.node("n3"), guard(second), table.Assign{Processor: "counter", First: 0, Count: 1, Node: "n3"})
}

// leaseIsLostWithItsTable closes the table of a holder. The holder sees the loss, and
// another node gets the lease.
func leaseIsLostWithItsTable(t *testing.T, s *suite) {
	s.bootstrap()
	l := s.acquire("n3", "rebalance")
	began := time.Now()
	for time.Since(began) < ttl+ttl/2 { // it is renewed
		select {
		case <-l.Done():
			t.Fatalf("the lease was lost although its holder lives: %v", l.Err())
		case <-time.After(ttl / 4):
		}
	}
	s.stop("n3")
	<-l.Done()
	if err := l.Err(); !errors.Is(err, table.ErrLeaseLost) {
		t.Errorf("the holder got the error %v, want ErrLeaseLost", err)
	}
	next := s.acquire("n1", "rebalance")
	if next.Token <= l.Token {
		t.Errorf("the next holder has the token %d, want a token above %d", next.Token, l.Token)
	}
}

// leasesAreInEvents watches a lease.
func leasesAreInEvents(t *testing.T, s *suite) {
	s.bootstrap()
	n2 := s.node("n2")
	s.sync(n2)
	w := n2.Replica().Watch(n2.Replica().Revision())
	l := s.acquire("n1", "rebalance")
	e, err := w.Next(s.ctx)
	if err != nil {
		t.Fatal(err)
	}
	if len(e.Leases) != 1 || e.Leases[0] != (table.LeaseState{Name: "rebalance", Holder: "n1", Token: l.Token}) {
		t.Errorf("the event is %+v, want the lease", e)
	}
	if v := n2.Replica().Snapshot(); len(v.Leases) != 1 {
		t.Errorf("the snapshot has the leases %v", v.Leases)
	}
}
