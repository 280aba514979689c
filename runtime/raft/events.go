package raft

import (
	"bytes"
	"fmt"
	"log/slog"

	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/internal/backlog"
)

// events are sent to processors of the topology: applied updates and changes of the
// leader. The node's goroutines put events here and never wait. Turns of the instance
// send them.
type events[U, R any] struct {
	instance   int
	applied    func(fsm.AppliedUpdate[U, R]) error // nil: no processor receives applied updates
	leadership func(fsm.Leadership)                // nil: no processor receives changes of the leader
	decode     func(*appliedEvent) (U, R, error)
	host       fsm.Host
	logger     *slog.Logger

	waiting     backlog.List[appliedEvent]
	buffer      []backlog.Item[appliedEvent] // reused by each turn
	leader      backlog.Latest[fsm.Leadership]
	leaderKnown bool // a leader was known before; only the node's loop uses it
}

// appliedEvent is an update as it is in the log. It is kept encoded, so that each
// receiver gets its own copy, and so that the size of waiting updates is known.
type appliedEvent struct {
	fsm.Entry
	term   uint64
	update []byte
	value  string
}

// OnApplied sets the function that a turn of the instance calls for each applied
// update. Generated code calls OnApplied before Start. send returns an error if a queue
// is full.
func (m *Machine[S, U, R]) OnApplied(instance int, send func(fsm.AppliedUpdate[U, R]) error) {
	m.events.instance, m.events.applied, m.events.decode = instance, send, m.decode
	m.machine.Listen(&m.events)
}

// OnLeadership sets the function that a turn of the instance calls when the leader
// changes. Generated code calls OnLeadership before Start.
func (m *Machine[S, U, R]) OnLeadership(instance int, send func(fsm.Leadership)) {
	m.events.instance, m.events.leadership = instance, send
}

// Finish sends the remaining events. Generated code calls it when no further events can
// come.
func (m *Machine[S, U, R]) Finish() error {
	for {
		if more, err := m.events.sendPending(); !more || err != nil {
			return err
		}
	}
}

// decode decodes an update and its result.
func (m *Machine[S, U, R]) decode(a *appliedEvent) (u U, r R, err error) {
	if err = m.definition.UpdateCodec.Decode(a.update, &u); err == nil && m.results {
		err = m.definition.ResultCodec.Decode([]byte(a.value), &r)
	}
	return u, r, err
}

// Applied queues an applied update. The applier calls it.
func (e *events[U, R]) Applied(at fsm.Entry, term uint64, update []byte, value string) {
	if e.waiting.Put(at.Index, len(update)+len(value), appliedEvent{at, term, bytes.Clone(update), value}) {
		e.host.Wake()
	}
}

// Restored is called when a snapshot has replaced updates.
func (e *events[U, R]) Restored(index uint64) { e.waiting.Begin(index) }

// setLeader queues a change of the leader. The node's loop calls it.
func (e *events[U, R]) setLeader(l fsm.Leadership) {
	l.Instance = e.instance
	if !e.leaderKnown && l.Leader == "" {
		return // at the start no leader is known: this is not a change of the leader
	}
	e.leaderKnown = true
	if e.leader.Put(l) {
		e.host.Wake()
	}
}

// sendPending sends the events that wait, at most backlog.PerTurn applied updates. It
// reports whether more events wait.
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
