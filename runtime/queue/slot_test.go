package queue

import (
	"runtime"
	"sync"
	"testing"
)

func TestSlotHoldsOne(t *testing.T) {
	var s Slot[string]
	s.Head.Init(5, 1, new(listenerCounts))
	if _, ok := s.Pop(); ok {
		t.Error("Pop of an empty slot returned a message")
	}
	if !s.Offer("a") || s.Offer("b") || s.Offer("c") {
		t.Error("the slot must accept the first of three messages and refuse the others")
	}
	if s.Head.Len() != 1 || s.Head.Sent() != 3 || s.Head.Dropped() != 2 {
		t.Errorf("len %d, sent %d, dropped %d", s.Head.Len(), s.Head.Sent(), s.Head.Dropped())
	}
	if m, ok := s.Pop(); m != "a" || !ok {
		t.Errorf("popped %q, %v", m, ok)
	}
	s.Head.RefuseMany(7)
	if !s.Offer("d") || s.Head.Len() != 1 || s.Head.Taken() != 1 || s.Head.Dropped() != 9 || s.Head.Sent() != 11 {
		t.Errorf("len %d, taken %d, dropped %d, sent %d", s.Head.Len(), s.Head.Taken(), s.Head.Dropped(), s.Head.Sent())
	}
}

// TestSlotAcrossGoroutines checks that messages are in ascending order and that refused
// messages are counted.
func TestSlotAcrossGoroutines(t *testing.T) {
	const n = 50_000
	var s Slot[int]
	s.Head.Init(0, 1, new(listenerCounts))
	var wait sync.WaitGroup
	accepted := 0
	wait.Go(func() {
		for i := 1; i <= n || accepted == 0; i++ {
			if s.Offer(i) {
				accepted++
			}
		}
		for !s.Offer(1 << 30) { // the last one
			runtime.Gosched()
		}
		accepted++
	})
	last, got := 0, 0
	for last < 1<<30 {
		m, ok := s.Pop()
		if !ok {
			runtime.Gosched()
			continue
		}
		if m <= last {
			t.Fatalf("%d after %d", m, last)
		}
		last = m
		got++
	}
	wait.Wait()
	if got != accepted || s.Head.Len() != 0 || s.Head.Taken() != uint64(got) || s.Head.Sent() != s.Head.Taken()+s.Head.Dropped() {
		t.Errorf("accepted %d, got %d; sent %d, dropped %d", accepted, got, s.Head.Sent(), s.Head.Dropped())
	}
}
