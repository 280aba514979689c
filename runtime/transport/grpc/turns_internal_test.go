package grpc

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestTurns checks that the bound is kept, and that it follows the outcomes.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := turns{most: dialingMax}
		var mu sync.Mutex
		running, most := 0, 0
		attempt := func(o outcome) {
			if err := all.take(t.Context()); err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			running++
			most = max(most, running)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			running--
			mu.Unlock()
			all.give(o)
		}
		run := func(n int, o outcome) int {
			most = 0
			var group sync.WaitGroup
			for range n {
				group.Go(func() { attempt(o) })
			}
			group.Wait()
			return most
		}
		if n := run(100, attemptFailed); n != dialingMax {
			t.Errorf("%d attempts at the same time, want %d", n, dialingMax)
		}
		run(4, attemptTimedOut)
		if n := run(5, attemptFailed); n != 1 {
			t.Errorf("%d attempts at the same time after 4 without an answer, want 1", n)
		}
		run(3, attemptSucceeded)
		if n := run(100, attemptFailed); n != 4 {
			t.Errorf("%d attempts at the same time after 3 successes, want 4", n)
		}
		if all.running != 0 || len(all.waiting) != 0 {
			t.Errorf("%d run and %d wait at the end", all.running, len(all.waiting))
		}
	})
}

// TestTurnsOfThoseThatGiveUp checks that an attempt that is given up while it waits takes no turn.
func TestTurnsOfThoseThatGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := turns{most: 1}
		if err := all.take(t.Context()); err != nil {
			t.Fatal(err)
		}
		for given := range 2 {
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error)
			go func() { done <- all.take(ctx) }()
			synctest.Wait()
			if given == 1 {
				all.mu.Lock() // so that both happen before it goes on
				all.running--
				all.next()
				all.mu.Unlock()
			}
			cancel()
			if err := <-done; err == nil {
				all.give(attemptFailed)
			} else if given == 0 && all.running != 1 {
				t.Errorf("%d run, want 1", all.running)
			}
		}
		if all.running != 0 || len(all.waiting) != 0 {
			t.Errorf("%d run and %d wait at the end", all.running, len(all.waiting))
		}
	})
}
