package engine

import (
	"errors"
	"math"
	"runtime"
	"time"

	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/store"
)

// schedule says when the committer has work of its own. Times are those of Clock.Elapsed.
type schedule struct {
	tickAt time.Duration // the next timeout is due
	ownAt  time.Duration // while the disk is full, or after the engine's own work panicked: the next attempt
	paused bool          // by debug.start
	again  []*call       // debug.tick that must continue
}

// A batch is what one transaction carries out.
type batch struct {
	calls []*call
	acks  []core.Delivered
	tick  bool
	turn  bool // the tick looks at retries again that were left out

	// The result, valid if the transaction was committed.
	effects []core.Effect
	more    bool             // further timeouts are due
	retries *core.Retries    // of the tick; nil: it left out none
	created int              // promises that schedules created
	gaps    []protocol.Gap   // occurrences that schedules skipped
	passed  int64            // the latest deadline that an answer shows as passed, see protocol.Result
	stored  int64            // the time of day that was stored; 0: none
	skipped bool             // the tick or an acknowledgement panicked
	wait    time.Duration    // until the next timeout is due
	ended   ended            // of the transaction
	broken  *call            // its step panicked
	left    []core.Delivered // acks that were skipped
}

// run is the committer: the only goroutine that writes. While it syncs a commit, the
// callers of the next one gather in the queue.
func (e *Engine) run() {
	defer e.end()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-e.queue.wake:
		case <-e.hub.wake:
		case <-timer.C:
		case <-e.closing:
		}
		for e.Err() == nil && e.work() {
		}
		if e.isClosing() || e.Err() != nil {
			return
		}
		timer.Reset(e.untilWork())
	}
}

// end answers the calls that are left, and closes everything. Calls are left only if the
// store has failed.
func (e *Engine) end() {
	for c := e.queue.take(); c != nil; c = e.queue.take() {
		c.refuse(protocol.Unavailable, e.closedText())
		c.answer()
	}
	for _, c := range e.schedule.again {
		c.err = e.Err()
		c.answer()
	}
	e.hub.close()
	e.pusher.close()
	e.backup.end(ErrClosed) // the store closes when the last reader has ended
	if e.Err() == nil {
		e.lastCommit()
	}
	e.closeErr = e.config.Store.Close()
	close(e.stopped)
}

// lastCommit stores the clock and the acknowledgements that are left.
func (e *Engine) lastCommit() {
	b := batch{acks: e.hub.takeAcks(math.MaxInt)}
	err := e.config.Store.Update(func(tx store.Tx) error {
		e.clock.save(tx, e.clock.now())
		return e.carryOut(tx, &b)
	})
	if err != nil { // these messages are sent again after the next start
		e.config.Logger.Error("durable: cannot store which messages were delivered", "error", err)
	}
}

// work runs one transaction if there is work for it, and reports whether there is more.
func (e *Engine) work() bool {
	runtime.Gosched() // callers that can run add their calls to this transaction
	e.resend()
	e.refill()
	elapsed := e.config.Clock.Elapsed()
	b := batch{ended: e.ended}
	if len(e.schedule.again) > 0 {
		b.calls, e.schedule.again = e.schedule.again, nil
	} else if c := e.queue.take(); c != nil {
		b.calls = append(b.calls, c)
	}
	own := e.schedule.ownAt <= elapsed
	if own && !e.schedule.paused && !e.isClosing() {
		b.turn = e.retries.due(elapsed, e.hub)
		b.tick = b.turn || e.schedule.tickAt <= elapsed
	}
	if own && (len(b.calls) > 0 || b.tick || e.hub.acksAt() <= elapsed) {
		b.acks = e.hub.takeAcks(acksMax)
	}
	if len(b.calls) == 0 && !b.tick && len(b.acks) == 0 {
		return false
	}
	err := e.transact(&b)
	e.settle(&b, err)
	return true
}

// isClosing reports whether Close was called. Timeouts that are due then wait for the next
// engine on the store.
func (e *Engine) isClosing() bool {
	select {
	case <-e.closing:
		return true
	default:
		return false
	}
}

// untilWork returns the time until the committer has work of its own.
func (e *Engine) untilWork() time.Duration {
	elapsed := e.config.Clock.Elapsed()
	at := elapsed + tickInterval
	if !e.schedule.paused {
		at = min(at, e.schedule.tickAt, e.retries.next())
	}
	at = min(at, e.hub.acksAt())
	return max(at, e.schedule.ownAt) - elapsed
}

// transact runs the transaction of a batch. If a step panics, the transaction is repeated
// without it.
func (e *Engine) transact(b *batch) error {
	for {
		start := time.Now()
		var changed bool
		err := e.config.Store.Update(func(tx store.Tx) error {
			clear(b.ended)
			err := e.carryOut(watched{tx, b.ended}, b)
			changed = tx.Changed()
			return err
		})
		switch {
		case err == nil && changed:
			e.counters.commits.add(time.Since(start))
			for _, c := range b.calls {
				e.counters.operations.Add(uint64(len(c.ops)))
			}
			return nil
		case !errors.Is(err, errPanic):
			return err
		}
		b.exclude()
	}
}

// exclude answers the call that panicked and removes it from the batch. If it was the tick
// or an acknowledgement, these wait for the next attempt.
func (b *batch) exclude() {
	if b.broken == nil {
		b.skipped, b.tick, b.turn = true, false, false
		b.left, b.acks = b.acks, nil
		return
	}
	for i, c := range b.calls {
		if c == b.broken {
			b.calls = append(b.calls[:i:i], b.calls[i+1:]...)
		}
	}
	b.broken.refuse(protocol.Internal, "the operation failed, see the log of the server")
	b.broken.answer()
	b.broken = nil
}

// carryOut carries out the steps of a batch in a transaction. The first call is in the
// batch already; the calls that wait in the queue follow until the batch is full.
func (e *Engine) carryOut(tx store.Tx, b *batch) error {
	b.effects, b.more, b.created, b.gaps, b.retries, b.passed, b.stored = nil, false, 0, nil, nil, 0, 0
	limit := limit{start: time.Now(), opsMax: e.config.BatchMax}
	for i := 0; ; i++ {
		if i == len(b.calls) {
			if limit.reached() {
				break
			}
			c := e.queue.take()
			if c == nil {
				break
			}
			b.calls = append(b.calls, c)
		}
		if !b.calls[i].admitted() {
			continue
		}
		limit.add(b.calls[i])
		// the time of a call must not be before the call: a client may have read that the
		// deadline of a promise has passed, and must not be able to settle it then
		now := e.clock.now()
		if b.calls[i].certain = e.mustWait(tx, b.calls[i]); b.calls[i].certain != nil {
			continue
		}
		if err := e.carryOutCall(tx, b, b.calls[i], now); err != nil {
			return err
		}
		made := 0
		for k := range b.calls[i].results {
			made += ResultBytes(&b.calls[i].results[k])
		}
		b.calls[i].made(made)
		limit.bytes += made
	}
	return e.carryOutOwn(tx, b, e.clock.now())
}

func (e *Engine) carryOutCall(tx store.Tx, b *batch, c *call, now core.Instant) error {
	if c.at != nil {
		now = *c.at
	}
	for i, op := range c.ops {
		r, effects := e.step(tx, op, now)
		if r.Fault != nil {
			b.broken = c
			return r.Fault
		}
		if c.at == nil {
			b.passed = max(b.passed, r.Passed)
			e.noteDead(op, now)
		}
		c.results[i] = r
		b.effects = append(b.effects, effects...)
	}
	return nil
}

// carryOutOwn carries out the engine's own part of a batch.
func (e *Engine) carryOutOwn(tx store.Tx, b *batch, now core.Instant) error {
	b.broken = nil
	for _, ack := range b.acks {
		if r, _ := e.step(tx, ack, now); r.Fault != nil {
			return r.Fault
		}
	}
	if b.tick {
		b.retries = e.leaveOut(b.turn)
		r, effects := e.step(tx, core.Tick{Retries: b.retries}, now)
		if r.Fault != nil {
			return r.Fault
		}
		b.effects = append(b.effects, effects...)
		b.more, b.created, b.gaps = r.More, r.Occurrences, r.Gaps
	}
	b.wait = tickInterval
	if wait, ok := core.NextFrom(tx, now, e.retries.frontAfter(b)); ok {
		b.wait = min(b.wait, time.Duration(min(wait, tickInterval.Milliseconds()))*time.Millisecond)
	}
	if tx.Changed() || b.passed > e.stored.Load() || e.clock.doubtEnded(tx) {
		e.clock.save(tx, now)
		b.stored = now.Wall
	}
	return nil
}

// limit bounds a batch.
type limit struct {
	start       time.Time
	opsMax      int
	ops, bytes  int
	sinceLooked int
	late        bool
}

// lookInterval is how many operations are carried out between two readings of the clock.
const lookInterval = 16

func (l *limit) add(c *call) {
	l.ops += len(c.ops)
	l.bytes += c.size
	if l.sinceLooked += len(c.ops); l.sinceLooked >= lookInterval {
		l.sinceLooked = 0
		l.late = time.Since(l.start) > batchTimeMax
	}
}

func (l *limit) reached() bool { return l.late || l.ops >= l.opsMax || l.bytes >= batchBytesMax }

// settle answers the calls of a batch after its transaction, and sends its messages.
func (e *Engine) settle(b *batch, err error) {
	switch {
	case err == nil:
	case errors.Is(err, store.ErrFull):
		e.counters.full.Add(1)
		e.config.Logger.Error("durable: operations are refused", "operations", len(b.calls), "error", err)
		e.schedule.ownAt = e.config.Clock.Elapsed() + ownDelay
		for _, c := range b.calls {
			c.refuse(protocol.Unavailable, err.Error())
		}
	default:
		e.fail(err)
		for _, c := range b.calls {
			c.err = e.Err()
		}
	}
	if b.skipped {
		e.schedule.ownAt = e.config.Clock.Elapsed() + ownDelay
		e.hub.returnAcks(b.left)
	}
	if err != nil {
		e.hub.returnAcks(b.acks)
	} else {
		e.stored.Store(max(e.stored.Load(), b.stored))
		e.hub.acked(b.acks)
		e.plan(b)
		e.occurred(b.created, b.gaps)
		if b.tick {
			e.counters.ticks.Add(1)
			e.retries.note(b, e.config.Clock.Elapsed())
		}
	}
	for _, c := range b.calls {
		if err == nil && e.debug(c) {
			if !e.isClosing() {
				e.schedule.again = append(e.schedule.again, c)
				continue
			}
			c.refuse(protocol.Internal, "the server is shutting down, and has not processed all timeouts")
		}
		c.answer()
	}
	if err == nil {
		e.hub.deliver(b.effects, b.ended)
	}
}

// occurred counts the promises that schedules created, and logs which occurrences they
// skipped.
func (e *Engine) occurred(created int, gaps []protocol.Gap) {
	e.counters.schedules.Add(uint64(created))
	e.counters.gaps.Add(uint64(len(gaps)))
	for _, g := range gaps {
		e.config.Logger.Warn("durable: a schedule has missed too many occurrences, and skips the oldest", "schedule", g.Schedule,
			"skipped_from", date(g.From), "continues_at", date(g.To))
	}
}

// date is a time in a log.
func date(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339) }

// plan sets the time of the next tick.
func (e *Engine) plan(b *batch) {
	elapsed := e.config.Clock.Elapsed()
	switch {
	case b.more && !b.turn:
		e.schedule.tickAt = elapsed
	case b.skipped:
		e.schedule.tickAt = elapsed + tickInterval
	case b.tick:
		e.schedule.tickAt = elapsed + max(b.wait, time.Millisecond) // the unit of all times
	default:
		e.schedule.tickAt = elapsed + b.wait
	}
}
