package piper

import (
	"runtime"
	"sync/atomic"
)

// abandonedMax bounds the goroutines that hang in handlers for good: each holds a
// stack and what it refers to, and a process that has that many has a fault that
// no restart mends.
const abandonedMax = 64

// Life tells where the goroutine of a watched instance is: in the user's code,
// which may take too long, or in the pool's. A goroutine that was abandoned while
// it was in the user's code ends when it comes back, and touches nothing. An
// instance that takes the place of an abandoned one has another Life.
//
// The nil Life is that of a recorder's sender: nobody watches.
type Life struct {
	pool  *Pool
	state atomic.Uint64 // whereabouts in the lower two bits, above them a count
	since atomic.Int64  // when the goroutine last went away, or said that it is alive
}

// whereabouts of a goroutine
const (
	inPool    uint64 = iota // in the pool's code
	inHandler               // in the user's
	abandoned               // away, and not to come back
	whereMask uint64 = 3
)

// Enter goes into the user's code.
func (l *Life) Enter() {
	if l != nil {
		l.since.Store(l.pool.clock())
		l.state.Store(l.state.Load()&^whereMask + whereMask + 1 + inHandler)
	}
}

// Leave comes back from it. An abandoned goroutine ends here. Leave reports whether
// there was something to come back from.
func (l *Life) Leave() (wasAway bool) {
	if l == nil || l.state.Load()&whereMask == inPool {
		return false
	}
	if !l.tryReturn() {
		runtime.Goexit()
	}
	return true
}

// comeBack reports whether the goroutine was not abandoned, and will not be.
func (l *Life) tryReturn() bool {
	s := l.state.Load()
	return s&whereMask == inPool || s&whereMask == inHandler && l.state.CompareAndSwap(s, s&^whereMask)
}

// Alive makes a Life the listener of topo.Alive.
func (l *Life) Alive() {
	if l.state.Load()&whereMask == inHandler {
		l.since.Store(l.pool.clock())
	}
}

// overdue reports whether a call takes longer than timeout, and when it would.
// The state is that of this call, for abandon.
func (l *Life) overdue(now, timeout int64) (state uint64, at int64, is bool) {
	state = l.state.Load()
	if state&whereMask != inHandler {
		return state, now + timeout, false
	}
	at = l.since.Load() + timeout
	return state, at, at <= now
}

// abandon gives up a call that overdue has found; false: it has come back.
func (l *Life) abandon(state uint64) bool {
	return l.state.CompareAndSwap(state, state&^whereMask|abandoned)
}
