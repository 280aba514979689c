package fsm

import (
	"reflect"
	"slices"
	"time"

	"github.com/topogen/topogen/runtime/internal/bug"
)

// Machine is a state, and the updates that are not both applied and committed:
// the write-ahead log of rast.md 2.15, in memory. Its zero value holds a zero
// state and is ready to use, by one goroutine at a time.
//
// Updates are numbered from 0 in the order in which they were added. Three borders
// and the end divide them, and always
//
//	cleaned <= min(applied, committed) <= end
//
// Those before cleaned are forgotten; the next to apply is that at applied; those
// before committed cannot be reverted.
type Machine[S, U any, P Updater[S, U]] struct {
	state     S
	log       []U    // the updates from cleaned to end
	cleaned   uint64 // the number of log[0]
	applied   uint64
	committed uint64
	logged    bool  // entries of a log say where and when updates happen
	now       int64 // else: the time of the last, where updates ask for it
	direct    bool  // updates have no UpdateAt, and are not checked; both takes long to find out
	checks    *checks
}

// State returns the state, which is the machine's: whoever changes it changes what
// updates find.
func (m *Machine[S, U, P]) State() *S { return &m.state }

// Borders returns the three borders, and the number that the next update will
// have.
func (m *Machine[S, U, P]) Borders() (cleaned, applied, committed, end uint64) {
	return m.cleaned, m.applied, m.committed, m.end()
}

func (m *Machine[S, U, P]) end() uint64 { return m.cleaned + uint64(len(m.log)) }

// Add adds updates, which are the machine's from then on.
func (m *Machine[S, U, P]) Add(updates ...U) { m.log = append(m.log, updates...) }

// Apply applies up to budget updates, forgets what is no longer needed, and
// returns how many it has applied. An update that fails or panics stays the next
// one and its error is returned; the call may be repeated. So an Update that fails
// must leave the state such that it can be called again.
func (m *Machine[S, U, P]) Apply(budget int) (n int, err error) {
	for n < budget && m.applied < m.end() && err == nil {
		if err = m.step(Entry{Index: m.applied + 1}); err == nil {
			n++
		}
	}
	m.Cleanup()
	return n, err
}

// step applies the next update, of which there is one.
func (m *Machine[S, U, P]) step(e Entry) error {
	err := m.update(P(&m.log[m.applied-m.cleaned]), e)
	if err == nil {
		m.applied++
	}
	return err
}

// Commit commits all updates that were added, applied yet or not.
func (m *Machine[S, U, P]) Commit() { m.committed = m.end() }

// Upcoming returns copies of the updates that are not committed, oldest first; see
// the message of that name.
func (m *Machine[S, U, P]) Upcoming() []U {
	return clones(m.log[m.committed-m.cleaned:])
}

// Revert drops the updates that are not committed, newest first, and undoes those
// that were applied. One that fails or panics in being undone is still there, those
// behind it are gone, and its error is returned; the call may be repeated.
func (m *Machine[S, U, P]) Revert() error {
	border := m.committed
	if bug.On(bug.RevertUndoesCommitted) {
		border = m.cleaned
	}
	m.truncate(max(m.applied, border))
	for m.end() > border {
		if err := m.undo(P(&m.log[len(m.log)-1])); err != nil {
			return err
		}
		m.applied--
		m.truncate(m.applied)
	}
	m.Cleanup()
	return nil
}

// truncate forgets the updates from number end on.
func (m *Machine[S, U, P]) truncate(end uint64) {
	m.log = slices.Delete(m.log, int(end-m.cleaned), len(m.log))
}

// Cleanup forgets the updates that are both applied and committed. Apply does it
// too.
func (m *Machine[S, U, P]) Cleanup() {
	border := min(m.applied, m.committed)
	m.log = slices.Delete(m.log, 0, int(border-m.cleaned))
	m.cleaned = border
}

// propose applies an update and commits it, and with it those that stand before it,
// all of which are applied. Where it fails there is no trace of it.
func (m *Machine[S, U, P]) propose(p P, e Entry) error {
	if err := m.update(p, e); err != nil {
		return err
	}
	end := m.end() + 1
	clear(m.log)
	m.log = m.log[:0]
	m.cleaned, m.applied, m.committed = end, end, end
	return nil
}

func (m *Machine[S, U, P]) update(p P, e Entry) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = panicked(value)
		} else if err != nil && !sound(err) {
			err = panicked(err)
		}
	}()
	if m.direct {
		return p.Update(&m.state)
	}
	return m.updateAt(p, e)
}

func (m *Machine[S, U, P]) updateAt(p P, e Entry) error {
	t, ok := any(p).(timed[S])
	if m.logged || !checked() {
		m.direct = !ok
	} else if m.checks == nil {
		m.checks = newChecks(checkedValues)
	}
	if m.checks == nil {
		return m.call(p, t, e)
	}
	state := reflect.ValueOf(&m.state).Elem()
	before, checks := m.checks.before(state)
	err := m.call(p, t, e)
	if err != nil && checks && !m.checks.after(state, before) {
		return changed[U](err)
	}
	return err
}

// call calls UpdateAt, where t is not nil, or Update.
func (m *Machine[S, U, P]) call(p P, t timed[S], e Entry) error {
	if t == nil {
		return p.Update(&m.state)
	}
	if !m.logged {
		m.now = max(m.now, time.Now().UnixNano())
		e.Time = m.now
	}
	return t.UpdateAt(&m.state, e)
}

func (m *Machine[S, U, P]) undo(p P) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = panicked(value)
		} else if err != nil && !sound(err) {
			err = panicked(err)
		}
	}()
	return p.Revert(&m.state)
}

// clones copies updates, each by its method Clone where it has one.
func clones[U any](updates []U) []U {
	updates = slices.Clone(updates)
	for i := range updates {
		if u, ok := any(&updates[i]).(interface{ Clone() U }); ok {
			updates[i] = u.Clone()
		}
	}
	return updates
}
