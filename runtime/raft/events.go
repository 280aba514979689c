package raft

import (
	"bytes"
	"fmt"
	"log/slog"

	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/internal/backlog"
)

// events are what a machine tells processors of its topology. The node's goroutines put
// it here and never wait; turns of the instance send it.
type events[U, R any] struct {
	instance   int
	applied    func(fsm.AppliedUpdate[U, R]) error // nil: no processor hears of it
	leadership func(fsm.Leadership)                // nil: no processor hears of it
	decode     func(*appliedEvent) (U, R, error)
	host       fsm.Host
	logger     *slog.Logger

	waiting     backlog.List[appliedEvent]
	buffer      []backlog.Item[appliedEvent] // a turn's, used again
	leader      backlog.Latest[fsm.Leadership]
	leaderKnown bool // a leader was known; the loop's
}

// appliedEvent is an update as the log has it: bytes, so that its receiver has one of its
// own, and waiting updates have a size.
type appliedEvent struct {
	fsm.Entry
	term   uint64
	update []byte
	value  string
}

// TellApplied has send called, in turns of the instance, for each update that is applied.
// Generated code calls it before Start. send returns an error where a queue is full.
func (m *Machine[S, U, R]) TellApplied(instance int, send func(fsm.AppliedUpdate[U, R]) error) {
	m.events.instance, m.events.applied, m.events.decode = instance, send, m.decode
	m.machine.Listen(&m.events)
}

// TellLeadership has send called, in turns of the instance, when the leader changes.
// Generated code calls it before Start.
func (m *Machine[S, U, R]) TellLeadership(instance int, send func(fsm.Leadership)) {
	m.events.instance, m.events.leadership = instance, send
}

// Finish tells the rest. Generated code calls it when nothing comes any more.
func (m *Machine[S, U, R]) Finish() error {
	for {
		if more, err := m.events.sendPending(); !more || err != nil {
			return err
		}
	}
}

// decode makes an update and its result of what the log has.
func (m *Machine[S, U, R]) decode(a *appliedEvent) (u U, r R, err error) {
	if err = m.definition.UpdateCodec.Decode(a.update, &u); err == nil && m.results {
		err = m.definition.ResultCodec.Decode([]byte(a.value), &r)
	}
	return u, r, err
}

// Applied takes an update that was applied. The node's applier calls it.
func (e *events[U, R]) Applied(at fsm.Entry, term uint64, update []byte, value string) {
	if e.waiting.Put(at.Index, len(update)+len(value), appliedEvent{at, term, bytes.Clone(update), value}) {
		e.host.Wake()
	}
}

// Restored is called where a snapshot took the place of updates.
func (e *events[U, R]) Restored(index uint64) { e.waiting.Begin(index) }

// leads takes who leads. The node's loop calls it.
func (e *events[U, R]) setLeader(l fsm.Leadership) {
	l.Instance = e.instance
	if !e.leaderKnown && l.Leader == "" {
		return // at first no leader is known, which nobody has to hear
	}
	e.leaderKnown = true
	if e.leader.Put(l) {
		e.host.Wake()
	}
}

// send tells what waits: as much as a turn should. It reports whether there is more.
func (e *events[U, R]) sendPending() (more bool, err error) {
	if l, ok := e.leader.Take(); ok {
		e.leadership(l)
	}
	if e.applied == nil {
		return false, nil
	}
	items, more, lost := e.waiting.Take(e.buffer, backlog.PerTurn)
	if lost > 0 {
		e.logger.Warn("raft: the processors that receive applied updates are too slow: some updates were not sent to them", slog.Int("updates", lost))
	}
	for i := range items {
		if err := e.deliver(&items[i]); err != nil {
			return false, err
		}
	}
	clear(items)
	e.buffer = items
	return more, nil
}

func (e *events[U, R]) deliver(item *backlog.Item[appliedEvent]) error {
	a := &item.Event
	update, value, err := e.decode(a)
	if err != nil {
		return fmt.Errorf("raft: entry %d was applied but cannot be decoded for the processors that receive it: %w", a.Index, err)
	}
	m := fsm.AppliedUpdate[U, R]{Entry: a.Entry, Term: a.term, Instance: e.instance, Since: item.Since, Update: update, Value: value}
	if e.applied(m) != nil {
		e.waiting.Lose(a.Index)
	}
	return nil
}
