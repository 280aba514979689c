package raft_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/raft"
)

// TestSession proposes in one session from many goroutines. Some of them give up and repeat their
// request. Each update is applied once, and each goroutine gets the value of its update.
func TestSession(t *testing.T) {
	m := openStack(t, raft.Config{Disk: newMemoryDisk(1)})
	s, err := m.OpenSession(t.Context(), "client")
	if err != nil {
		t.Fatal(err)
	}
	const goroutines, each = 32, 40
	var all sync.WaitGroup
	var mu sync.Mutex
	var values []int64
	for g := range goroutines {
		all.Go(func() {
			for i := range each {
				v, err := s.Propose(t.Context(), move{push: 1})
				if i%4 == 0 {
					v, err = impatiently(t, s)
				}
				if err != nil {
					t.Errorf("goroutine %d: %v", g, err)
				}
				mu.Lock()
				values = append(values, v)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	slices.Sort(values)
	if n := len(slices.Compact(values)); n != goroutines*each {
		t.Errorf("%d updates must have different values, got %d values", goroutines*each, n)
	}
	const pushed = goroutines*each + goroutines*each/4
	if err := m.Read(t.Context(), func(s *stack) {
		if len(*s) != pushed {
			t.Errorf("%d were pushed, want %d", len(*s), pushed)
		}
	}); err != nil {
		t.Error(err)
	}
}

// impatiently repeats a request with contexts that end soon, until it is answered.
func impatiently(t *testing.T, s *raft.Session[stack, move, int64]) (int64, error) {
	q, err := s.Request(t.Context(), move{push: 1})
	if err != nil {
		return 0, err
	}
	for {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(300))*time.Microsecond)
		r, err := q.Do(ctx)
		cancel()
		if err == nil || !errors.Is(err, context.DeadlineExceeded) {
			return r.Value, err
		}
	}
}

// TestRequests: the number of open requests is limited. A request ends with a known outcome, or when
// it is dropped.
func TestRequests(t *testing.T) {
	m := openStack(t, raft.Config{Disk: newMemoryDisk(1)})
	ctx := t.Context()
	s, err := m.OpenSession(ctx, "client")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Propose(ctx, move{}); !errors.Is(err, errEmpty) {
		t.Errorf("an empty stack: %v", err)
	}
	oldest, err := s.Request(ctx, move{push: 1})
	if err != nil {
		t.Fatal(err)
	}
	if oldest.Sequence() != 2 {
		t.Errorf("the sequence number must be 2, got %d", oldest.Sequence())
	}
	done := 0
	for ; done < 5000; done++ {
		short, cancel := context.WithCancel(ctx)
		stop := context.AfterFunc(short, func() {})
		if done > 1000 {
			cancel()
		}
		_, err = s.Propose(short, move{push: 2})
		stop()
		cancel()
		if errors.Is(err, fsm.ErrTooMany) {
			break
		}
	}
	if done < 1000 || done == 5000 || !errors.Is(err, context.Canceled) || !fsm.OutcomeKnown(err) {
		t.Errorf("Propose must return ErrTooMany after 1000 to 5000 open requests, got %v after %d", err, done)
	}
	waits := make(chan error, 1)
	go func() {
		_, err := s.Propose(ctx, move{push: 3})
		waits <- err
	}()
	r, err := oldest.Do(ctx)
	if err != nil || r.Value != 1023 && r.Value < 1000 {
		t.Errorf("the oldest request: %+v, %v", r, err)
	}
	if err := <-waits; err != nil {
		t.Errorf("a request that waited for the oldest one: %v", err)
	}
	if _, err := oldest.Do(ctx); err == nil {
		t.Error("a request must not be repeated after its end")
	}
	dropped, err := s.Request(ctx, move{push: 4})
	if err != nil {
		t.Fatal(err)
	}
	dropped.Drop()
	dropped.Drop()
	if _, err := m.ProposeAs(ctx, s.Number(), dropped.Sequence(), dropped.Sequence()+1, move{}); err == nil || !strings.Contains(err.Error(), "not below the floor") {
		t.Errorf("a floor above the sequence: %v", err)
	}
}

// TestADoubtStays: a request stays unknown after an attempt with an unknown outcome, even if the next
// attempt fails because the node has stopped.
func TestADoubtStays(t *testing.T) {
	m := openStack(t, raft.Config{Disk: newMemoryDisk(1)})
	s, err := m.OpenSession(t.Context(), "client")
	if err != nil {
		t.Fatal(err)
	}
	ask := func(ended bool) error {
		q, err := s.Request(t.Context(), move{push: 1})
		if err != nil {
			t.Fatal(err)
		}
		if ended {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := q.Do(ctx); fsm.OutcomeKnown(err) {
				return nil // the request was answered before the context was checked
			}
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		_, err = q.Do(t.Context())
		return err
	}
	if err := ask(true); err != nil && (fsm.OutcomeKnown(err) || !errors.Is(err, fsm.ErrStopped)) {
		t.Errorf("a repeated request at a stopped node: %v", err)
	}
	if err := ask(false); !fsm.OutcomeKnown(err) || !errors.Is(err, fsm.ErrStopped) {
		t.Errorf("a first request at a stopped node: %v", err)
	}
}

// TestNamesOfClients: empty and long names of clients are refused.
func TestNamesOfClients(t *testing.T) {
	m := openStack(t, raft.Config{Disk: newMemoryDisk(1)})
	for _, n := range []int{0, 65} {
		if _, err := m.OpenSession(t.Context(), strings.Repeat("x", n)); err == nil || !strings.Contains(err.Error(), fmt.Sprint("must have 1 to 64 bytes, got ", n)) {
			t.Errorf("a name of %d bytes: %v", n, err)
		}
	}
}

// TestSessionsOfOthersStay: if a client opens sessions in a loop, its own older sessions expire.
// Sessions of other clients and of nodes stay.
func TestSessionsOfOthersStay(t *testing.T) {
	m := openStack(t, raft.Config{Disk: newMemoryDisk(1)})
	ctx := t.Context()
	ann, err := m.OpenSession(ctx, "ann")
	if err != nil {
		t.Fatal(err)
	}
	var first *raft.Session[stack, move, int64]
	for i := range 200 {
		s, err := m.OpenSession(ctx, "loop")
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = s
		}
	}
	if _, err := first.Propose(ctx, move{push: 1}); !errors.Is(err, fsm.ErrSessionExpired) {
		t.Errorf("the loop's first session: %v", err)
	}
	if _, err := ann.Propose(ctx, move{push: 1}); err != nil {
		t.Errorf("another client's session: %v", err)
	}
	if _, err := m.Propose(ctx, move{push: 1}); err != nil {
		t.Errorf("the node's session: %v", err)
	}
}

// TestSessionsAreShort: a session expires if it is not used for SessionTTL. A node with a different
// SessionTTL refuses a snapshot.
func TestSessionsAreShort(t *testing.T) {
	c := raft.Config{Disk: newMemoryDisk(1), SessionTTL: time.Nanosecond}
	m := openStack(t, c)
	s, err := m.OpenSession(t.Context(), "client")
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if _, err := m.Propose(t.Context(), move{push: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err = s.Propose(t.Context(), move{push: 1}); !errors.Is(err, fsm.ErrSessionExpired) {
		t.Errorf("an unused session must expire, got: %v", err)
	}
	if _, err := m.Snapshot(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	c.Topology, c.Group, c.SessionTTL = "test", "stack", time.Hour
	other, err := raft.New(c, stackDefinition)
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(t.Context(), nil); !errors.Is(err, fsm.ErrDamaged) || !strings.Contains(err.Error(), "Options.SessionTTL 1, and this program has 3600000000000") {
		t.Errorf("a different SessionTTL must be refused, got: %v", err)
	}
}
