package core

import (
	"strconv"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// Operations for the driver of the core. They are not on the wire.
type (
	// Tick processes timeouts that are due: promises, leases, retries, delays, schedules and
	// old messages. Result.More says whether more of them are due.
	Tick struct {
		// Limit is the highest number of timeouts to process. 0 means [TickLimitDefault].
		Limit int
		// Retries lets the driver leave out retries. nil: all that are due are processed.
		Retries *Retries
	}
	// Delivered says that a connection took the unblock message of Promise for Address.
	// Further calls with the same values do nothing.
	Delivered struct{ Promise, Address string }
)

// TickLimitDefault bounds a [Tick] to a few milliseconds, so that requests do not wait for long
// behind a large number of timeouts.
const TickLimitDefault = 1_000

func (Tick) Kind() string      { return "tick" }
func (Delivered) Kind() string { return "delivered" }

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func (s *step) tick(op Tick) protocol.Result {
	limit := op.Limit
	if limit <= 0 {
		limit = TickLimitDefault
	}
	expireTasks := func(limit int) int { return s.expireTasks(op.Retries, limit) }
	phases := []func(int) int{s.expirePromises, expireTasks, s.endDelays, s.runSchedules, s.expireOutbox}
	for _, phase := range phases {
		if limit <= 0 {
			break // the later phases rely on the earlier ones being complete
		}
		limit -= phase(limit)
	}
	wait, ok := s.next(s.now, op.Retries.from())
	return protocol.Result{Status: protocol.OK, More: ok && wait == 0, Occurrences: s.occurrences, Gaps: s.gaps}
}

// debugTick processes what is due at a time that the client names. Both clocks have this
// time.
func (s *step) debugTick(op protocol.DebugTick) protocol.Result {
	s.now = Instant{Wall: op.Time, Run: op.Time}
	r := protocol.Result{More: true}
	for done := 0; r.More && done < s.config.DebugTickMax; done += TickLimitDefault {
		r = s.tick(Tick{})
	}
	return r
}

// expirePromises settles promises whose deadline has passed, and returns their number.
// All are settled before any task is resumed, and all their tasks are fulfilled before,
// so that no task is resumed that ends in the same step.
func (s *step) expirePromises(limit int) int {
	due := s.due(PromiseTimeouts, nil, s.now.Wall, limit)
	for _, e := range due {
		p := s.mustPromise(e.id, PromiseTimeouts)
		if p.state != pending || p.timeoutAt != e.at {
			panic(corrupt(PromiseTimeouts, timeKey(nil, e.at, e.id), "does not match its promise"))
		}
		s.settle(p, p.outcome(), protocol.Value{}, p.timeoutAt)
	}
	for _, e := range due {
		head, _ := s.promiseHead(e.id)
		s.fulfill(head, e.id)
	}
	for _, e := range due {
		s.notify(s.mustPromise(e.id, PromiseTimeouts))
	}
	return len(due)
}

// expireTasks ends leases and repeats execute messages. The task keeps its version: only
// the next lease increments it.
func (s *step) expireTasks(r *Retries, limit int) int {
	due := s.due(TaskTimeouts, r.from(), s.now.Run, limit)
	for _, e := range due {
		t := s.dueTask(TaskTimeouts, e)
		if !r.leaves(t) {
			s.offer(t)
		}
	}
	r.passed(due)
	return len(due)
}

// endDelays sends the first execute messages of tasks whose delay has passed.
func (s *step) endDelays(limit int) int {
	due := s.due(TaskDelays, nil, s.now.Wall, limit)
	for _, e := range due {
		s.offer(s.dueTask(TaskDelays, e))
	}
	return len(due)
}

// dueTask returns the task of an entry that is due. A task that is not live has no timeout
// any more, because promises expire first.
func (s *step) dueTask(table Table, e entry) *task {
	t := s.mustTask(e.id, table)
	if !t.timed() || t.due != e.at || t.timeouts() != table || !t.live(s.now) {
		panic(corrupt(table, timeKey(nil, e.at, e.id), "does not match its task"))
	}
	return t
}

func (s *step) runSchedules(limit int) int {
	n := 0
	for n < limit {
		due := s.due(ScheduleTimes, nil, s.now.Wall, 1)
		if len(due) == 0 {
			break
		}
		n += s.runSchedule(due[0], limit-n)
	}
	return n
}

func (s *step) expireOutbox(limit int) int {
	n := 0
	for _, e := range s.due(OutboxAges, nil, s.now.Run, limit) {
		if n >= limit {
			break
		}
		n += 1 + s.expireMessages(e, limit-n)
	}
	return n
}

// Next returns in how many milliseconds a [Tick] has work to do, 0 if it has work now. It
// returns false if nothing is scheduled. A store that is corrupt has work now: the Tick
// returns the error.
func Next(kv KV, now Instant) (wait int64, ok bool) { return NextFrom(kv, now, nil) }

// NextFrom is Next without the retries and leases below a key, see [Retries].
func NextFrom(kv KV, now Instant, retries []byte) (wait int64, ok bool) {
	var fault error
	defer func() {
		if fault != nil {
			wait, ok = 0, true
		}
	}()
	defer catch(&fault)
	x := tx{kv: kv}
	return x.next(now, retries)
}

func (x *tx) next(now Instant, retries []byte) (wait int64, ok bool) {
	for _, index := range [...]struct {
		table Table
		from  []byte
		now   int64
	}{{PromiseTimeouts, nil, now.Wall}, {TaskTimeouts, retries, now.Run}, {TaskDelays, nil, now.Wall}, {ScheduleTimes, nil, now.Wall}, {OutboxAges, nil, now.Run}} {
		key := x.first(index.table, index.from)
		if key == nil {
			continue
		}
		at, _, valid := splitTime(key)
		if !valid {
			panic(corrupt(index.table, key, "the key has no time"))
		}
		if left := max(0, at-index.now); !ok || left < wait {
			wait, ok = left, true
		}
	}
	return wait, ok
}
