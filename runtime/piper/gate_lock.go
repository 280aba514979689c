package piper

import (
	"runtime"
	"sync"
	"sync/atomic"
)

const (
	gatePauseSpins = 2000 // about a microsecond, in which the holder of the lock can send some 20 messages
	gatePausesMax  = 8    // pauses without a yield, so a worker that shares the CPU waits at most some microseconds
)

// gateLock is a mutex whose critical sections take some 20 ns. If two CPUs took turns at each
// message, most of the time would be spent on moving the memory of the queue from one cache to
// the other. So a goroutine that finds the lock taken leaves it alone for about a microsecond,
// in which another goroutine sends several messages. Only one goroutine waits like this, the
// others sleep.
type gateLock struct {
	held atomic.Bool
	next sync.Mutex // held by the goroutine that waits for held
}

func (k *gateLock) TryLock() bool { return k.held.CompareAndSwap(false, true) }

func (k *gateLock) Lock() {
	if !k.TryLock() {
		k.lockSlow()
	}
}

func (k *gateLock) lockSlow() {
	k.next.Lock()
	for pauses := 1; ; pauses++ {
		for range gatePauseSpins { // does not look at held, which would slow down its holder
		}
		if !k.held.Load() && k.TryLock() {
			break
		}
		if pauses%gatePausesMax == 0 {
			runtime.Gosched()
		}
	}
	k.next.Unlock()
}

// Unlock is a full barrier.
func (k *gateLock) Unlock() { k.held.Store(false) }
