package piper

import (
	"runtime"
	"sync"
	"testing"
)

// TestGateLock counts with many goroutines, which sometimes yield while they hold the lock. A
// second holder would lose a count, and the race detector would find it.
func TestGateLock(t *testing.T) {
	const goroutines, each, yieldEvery = 16, 1000, 16
	var k gateLock
	var all sync.WaitGroup
	count := 0
	for range goroutines {
		all.Go(func() {
			for i := range each {
				k.Lock()
				n := count
				if i%yieldEvery == 0 {
					runtime.Gosched()
				}
				count = n + 1
				k.Unlock()
			}
		})
	}
	all.Wait()
	if count != goroutines*each {
		t.Errorf("%d goroutines have counted to %d, want %d", goroutines, count, goroutines*each)
	}
	if !k.TryLock() || k.TryLock() {
		t.Error("TryLock locks a lock that is held, or does not lock a free lock")
	}
}
