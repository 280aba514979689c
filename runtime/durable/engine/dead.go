package engine

import (
	"time"

	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/protocol"
)

// deadInterval is the time between two logs about promises that are created after their
// deadline: each of them is one, and there can be thousands in a second.
const deadInterval = time.Minute

// dead counts the promises that were settled when they were created, because the time of the
// store is ahead of the clock of the computer. The committer uses it.
type dead struct {
	count  int
	logged bool
	at     time.Duration // Elapsed, of the last log
}

// noteDead logs that an operation creates a promise whose deadline has passed by the time of
// the store, but not by the clock of the computer. The client sees a timeout, and no reason.
func (e *Engine) noteDead(op protocol.Operation, now core.Instant) {
	create, ok := creation(op)
	if !ok || create.TimeoutAt > now.Wall {
		return
	}
	computer, elapsed := e.clock.reading()
	if create.TimeoutAt <= computer.Milliseconds() {
		return
	}
	d := &e.dead
	d.count++
	if d.logged && elapsed-d.at < deadInterval {
		return
	}
	e.config.Logger.Warn("durable: promises time out when they are created, because the time of the store is ahead of the clock of the computer: correct the clock, or the store with \"topoctl durable clock\"",
		"promises", d.count, "last", create.ID, "deadline", date(create.TimeoutAt), "clock", date(computer.Milliseconds()), "store", date(now.Wall))
	*d = dead{logged: true, at: elapsed}
}

// creation returns the promise that an operation creates.
func creation(op protocol.Operation) (protocol.PromiseCreate, bool) {
	switch op := op.(type) {
	case protocol.PromiseCreate:
		return op, true
	case protocol.TaskCreate:
		return op.Action, true
	case protocol.TaskFence:
		create, ok := op.Action.(protocol.PromiseCreate)
		return create, ok
	}
	return protocol.PromiseCreate{}, false
}
