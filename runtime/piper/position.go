package piper

import (
	"runtime"
	"sync/atomic"
)

// abandonedMax bounds the number of abandoned goroutines. Each of them keeps its stack
// and all memory that the stack refers to. A program that hangs so often has a fault
// that restarts cannot repair.
const abandonedMax = 64

// Position records whether the goroutine of a watched instance is in user code, which
// may take too long, or in the code of the pool. A goroutine that was abandoned in user
// code ends as soon as the user code returns, and changes nothing in the pool. The next
// instance has a new Position.
//
// A nil Position belongs to the sender of a recorder, which has no timeouts.
type Position struct {
	pool  *Pool
	state atomic.Uint64 // position of the goroutine in the lower two bits, a count of calls above
	since atomic.Int64  // when the current call began, or last reported progress
}

// positions of a goroutine
const (
	inPool    uint64 = iota // in the code of the pool
	inHandler               // in user code
	abandoned               // in user code, and must end when it returns
	whereMask uint64 = 3
)

// Enter marks the start of a call of user code.
func (l *Position) Enter() {
	if l != nil {
		l.since.Store(l.pool.callClock())
		l.state.Store(l.state.Load()&^whereMask + whereMask + 1 + inHandler)
	}
}

// Leave marks the end of a call of user code. An abandoned goroutine ends here. Leave
// reports whether a call was running.
func (l *Position) Leave() (wasInCall bool) {
	if l == nil || l.state.Load()&whereMask == inPool {
		return false
	}
	if !l.tryReturn() {
		runtime.Goexit()
	}
	return true
}

// tryReturn reports whether the goroutine was not abandoned. If so, it cannot be
// abandoned from now on.
func (l *Position) tryReturn() bool {
	s := l.state.Load()
	return s&whereMask == inPool || s&whereMask == inHandler && l.state.CompareAndSwap(s, s&^whereMask)
}

// Alive starts the timeout of the current call again. topo.Alive calls it.
func (l *Position) Alive() {
	if l.state.Load()&whereMask == inHandler {
		l.since.Store(l.pool.callClock())
	}
}

// overdue reports whether the current call takes longer than timeout, and when its
// timeout ends. The returned state identifies the call, for abandon.
func (l *Position) overdue(now, timeout int64) (state uint64, at int64, isOverdue bool) {
	state = l.state.Load()
	if state&whereMask != inHandler {
		return state, now + timeout, false
	}
	at = l.since.Load() + timeout
	return state, at, at <= now
}

// abandon abandons the call that overdue has found. It returns false if the call has
// returned.
func (l *Position) abandon(state uint64) bool {
	return l.state.CompareAndSwap(state, state&^whereMask|abandoned)
}
