package piper

import (
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/topogen/topogen/runtime/internal/patient"
)

// Inputs holds what an instance must learn about its inputs: the events that were not yet reported
// to it, and the time of the next Alarm. Only the instances of a processor with Events have it.
// Except for list, it belongs to the worker of the instance.
type Inputs struct {
	unit          *Unit
	alarm         alarm
	afterMessages bool // some events must wait until queued messages are handled

	mu   sync.Mutex     // guards list
	list []pendingEvent // other goroutines add events; no event is lost
}

// pendingEvent is an event with the number of times that it must be reported. The count
// bounds the memory if a sender is restarted often and the receiver is slow.
type pendingEvent struct {
	Event
	times int
}

// post adds an event. EventClosed of an edge is added only once.
func (in *Inputs) post(e Event) {
	if in.unit.remote {
		return
	}
	in.mu.Lock()
	if at := slices.IndexFunc(in.list, func(p pendingEvent) bool { return p.Event == e }); at < 0 {
		in.list = append(in.list, pendingEvent{e, 1})
	} else if e.Kind != EventClosed {
		in.list[at].times++
	}
	in.mu.Unlock()
	in.unit.signal(controlEvent)
}

// take removes the first event that can be reported now. EventClosed is reported after the
// last message of the edge. If there is none, the events that are left wait for messages.
func (in *Inputs) take() (e Event, ok bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	at := slices.IndexFunc(in.list, func(e pendingEvent) bool {
		return e.Kind != EventClosed || !in.HasQueued(e.Index)
	})
	if at < 0 {
		in.afterMessages = len(in.list) > 0
		return e, false
	}
	e = in.list[at].Event
	if in.list[at].times--; in.list[at].times == 0 {
		in.list = slices.Delete(in.list, at, at+1)
	}
	return e, true
}

// recheck checks again which events can be reported, after all messages of a link were handled.
func (in *Inputs) recheck() {
	if in.afterMessages {
		in.afterMessages = false
		in.unit.pendingCalls |= callEvents
	}
}

// HasQueued reports whether the instance has a queued message of the edge. If it has, a
// missing call of the handler does not mean that the edge is silent.
func (in *Inputs) HasQueued(edge int) bool {
	if in.unit.watch().awaitsRetry() { // the edge of that message is not known
		return true
	}
	for l := in.unit.inlinks.Load(); l != nil; l = l.nextIn.Load() {
		for _, h := range l.heads {
			if h.Index() == edge && !h.Empty() {
				return true
			}
		}
	}
	return false
}

// CountTimeout counts and logs an input that was silent for too long.
func (in *Inputs) CountTimeout(edge int) {
	u := in.unit
	p, name := u.proc.pool, u.proc.pool.edgeName(edge)
	u.proc.faults.inputTimeouts.Add(1)
	p.logbook.limitedLine(u, logInput, line{slog.LevelWarn, "topogen: an input is silent",
		[]slog.Attr{slog.String("input", name), slog.Int("instance", u.Index())}})
	p.supervision.observe(func(o FaultObserver) { o.InputBroken(u.proc.Name, u.Index(), name) })
}

// CountRecovery counts a silent input that received a message again.
func (in *Inputs) CountRecovery(edge int) {
	u := in.unit
	u.proc.faults.circuitBreakerRecoveries.Add(1)
	u.proc.pool.supervision.observe(func(o FaultObserver) {
		o.InputRecovered(u.proc.Name, u.Index(), u.proc.pool.edgeName(edge))
	})
}

// Now is the time since the start of the topology, for the deadlines of inputs. Pauses of the
// process do not count.
func (in *Inputs) Now() time.Duration {
	return time.Duration(in.alarm.now(in.unit.proc.pool.clock()))
}

// SetAlarm makes the pool call Alarm at the given time of Now. A later call replaces the
// time.
func (in *Inputs) SetAlarm(at time.Duration) {
	u, a := in.unit, &in.alarm
	if a.at == int64(at) {
		return
	}
	p := u.proc.pool
	clock := p.clock()
	wait := max(int64(at)-a.now(clock), 0)
	a.at, a.step = int64(at), max(wait/patient.Checks, int64(time.Millisecond))
	if p.stepper != nil {
		a.step = math.MaxInt64 // virtual time has no pauses
	}
	a.check = clock + min(a.step, wait)
	u.proc.wakeAt(u, a.check)
}

// checkAlarm requests the call of Alarm if it is due.
func (in *Inputs) checkAlarm(clock int64) {
	switch due, at := in.alarm.due(clock); {
	case due:
		in.unit.pendingCalls |= callAlarm
	case at != 0:
		in.unit.proc.wakeAt(in.unit, at)
	}
}

// alarm is the next call of Alarm. A check is late if the process was stopped, the host slept,
// or the instance, its worker or the host was busy. The clock of the alarm does not count this
// delay, because the instance cannot know whether its senders were silent in that time.
type alarm struct {
	at     int64 // time of the call on the clock of the alarm; 0 means never
	check  int64 // time of the next check on the clock of the pool; 0 means never
	step   int64 // interval of the checks
	paused int64 // delay of the clock of the alarm behind the clock of the pool
}

// now returns the time on the clock of the alarm. clock is the time on the clock of the pool.
func (a *alarm) now(clock int64) int64 {
	if late := clock - a.check; a.check != 0 && late > a.step {
		a.paused += late
		a.check = clock
	}
	return clock - a.paused
}

// due reports whether Alarm must be called now. If not, wakeAt is the time of the next check.
func (a *alarm) due(clock int64) (due bool, wakeAt int64) {
	switch now := a.now(clock); {
	case a.at == 0:
		return false, 0
	case a.at <= now:
		a.at, a.check = 0, 0
		return true, 0
	case a.check <= clock:
		a.check = clock + min(a.step, a.at-now)
	}
	return false, a.check
}
