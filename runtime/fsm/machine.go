package fsm

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"
)

// Machine is a state and the updates that are not yet both applied and committed: a
// write-ahead log in memory. [NewMachine] makes one with a zero state. It must be used
// by one goroutine at a time.
//
// Updates are numbered from 0 in the order in which they were added. These borders
// divide them, and always
//
//	cleaned <= min(applied, committed) <= end
//
// Updates before cleaned are forgotten. The update at applied is the next one to apply.
// Updates before committed cannot be reverted.
type Machine[S, U, R any] struct {
	definition *Definition[S, U, R]
	state      S
	log        []U    // the updates from cleaned up to end
	cleaned    uint64 // the number of log[0]
	applied    uint64
	committed  uint64
	logged     bool  // the entries of a log say where and when updates happen
	direct     bool  // Update is called without any checks
	now        int64 // without a log: the last time that UpdateAt got
	clock      func() time.Time
	checks     *checks // nil: updates that fail are not checked
}

// NewMachine returns a Machine with a zero state. It panics if the definition has no
// Update.
func NewMachine[S, U, R any](d Definition[S, U, R]) *Machine[S, U, R] {
	must(d.check())
	m := newMachine(&d, false)
	if checked() {
		m.direct, m.checks = false, newChecks(checkedValues)
	}
	return m
}

// newMachine returns a Machine without checks.
func newMachine[S, U, R any](d *Definition[S, U, R], logged bool) *Machine[S, U, R] {
	return &Machine[S, U, R]{definition: d, logged: logged, direct: d.UpdateAt == nil, clock: time.Now}
}

// State returns the state itself, not a copy.
func (m *Machine[S, U, R]) State() *S { return &m.state }

// Borders returns the three borders and the number of the next update to be added.
func (m *Machine[S, U, R]) Borders() (cleaned, applied, committed, end uint64) {
	return m.cleaned, m.applied, m.committed, m.end()
}

func (m *Machine[S, U, R]) end() uint64 { return m.cleaned + uint64(len(m.log)) }

// Add adds updates. The caller must not use them afterwards.
func (m *Machine[S, U, R]) Add(updates ...U) { m.log = append(m.log, updates...) }

// Apply applies up to budget updates, forgets updates that are no longer needed, and
// returns how many updates it applied. An update that fails or panics remains the next
// one, and its error is returned. The call may be repeated. The values that updates
// return are discarded.
func (m *Machine[S, U, R]) Apply(budget int) (n int, err error) {
	for n < budget && m.applied < m.end() && err == nil {
		if _, err = m.step(Entry{Index: m.applied + 1}); err == nil {
			n++
		}
	}
	m.Cleanup()
	return n, err
}

// step applies the next update, which must exist.
func (m *Machine[S, U, R]) step(e Entry) (R, error) {
	v, err := m.update(&m.log[m.applied-m.cleaned], e)
	if err == nil {
		m.applied++
	}
	return v, err
}

// Commit commits all updates that were added, applied or not.
func (m *Machine[S, U, R]) Commit() { m.committed = m.end() }

// Upcoming returns copies of the updates that are not committed, oldest first, see the
// message [Upcoming].
func (m *Machine[S, U, R]) Upcoming() []U {
	return clones(m.log[m.committed-m.cleaned:])
}

// Revert drops the updates that are not committed, newest first, and undoes the applied
// ones. If undoing an update fails or panics, this update and all older ones remain,
// and the error is returned. The call may be repeated.
func (m *Machine[S, U, R]) Revert() error {
	m.truncate(max(m.applied, m.committed))
	for m.end() > m.committed {
		if err := m.undo(&m.log[len(m.log)-1]); err != nil {
			return err
		}
		m.applied--
		m.truncate(m.applied)
	}
	m.Cleanup()
	return nil
}

// truncate forgets the updates from number end on.
func (m *Machine[S, U, R]) truncate(end uint64) {
	m.log = slices.Delete(m.log, int(end-m.cleaned), len(m.log))
}

// Cleanup forgets the updates that are both applied and committed. Apply calls it.
func (m *Machine[S, U, R]) Cleanup() {
	border := min(m.applied, m.committed)
	m.log = slices.Delete(m.log, 0, int(border-m.cleaned))
	m.cleaned = border
}

// propose applies an update and commits it together with the updates before it, which
// must all be applied. If it fails, the update leaves no trace.
func (m *Machine[S, U, R]) propose(u *U, e Entry) (R, error) {
	v, err := m.update(u, e)
	if err == nil {
		end := m.end() + 1
		clear(m.log)
		m.log = m.log[:0]
		m.cleaned, m.applied, m.committed = end, end, end
	}
	return v, err
}

func (m *Machine[S, U, R]) update(u *U, e Entry) (v R, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = panicked(value)
		} else if err != nil && !inspectable(err) {
			err = panicked(err)
		}
	}()
	if m.direct {
		return m.definition.Update(u, &m.state)
	}
	if m.checks == nil {
		return m.call(u, e)
	}
	state := reflect.ValueOf(&m.state).Elem()
	before, checks := m.checks.before(state)
	v, err = m.call(u, e)
	if err != nil && checks && !m.checks.after(state, before) {
		return v, changed[U](err)
	}
	return v, err
}

// call calls UpdateAt if it is set, and Update otherwise.
func (m *Machine[S, U, R]) call(u *U, e Entry) (R, error) {
	if m.definition.UpdateAt == nil {
		return m.definition.Update(u, &m.state)
	}
	if !m.logged {
		m.now = max(m.now, m.clock().UnixNano())
		e.Time = m.now
	}
	return m.definition.UpdateAt(u, &m.state, e)
}

func (m *Machine[S, U, R]) undo(u *U) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = panicked(value)
		} else if err != nil && !inspectable(err) {
			err = panicked(err)
		}
	}()
	if m.definition.Revert == nil {
		return fmt.Errorf("%w: %T", errNoRevert, *u)
	}
	return m.definition.Revert(u, &m.state)
}

var errNoRevert = errors.New("fsm: the definition must have Revert to undo an update")

// clones copies updates, by their method Clone if they have one.
func clones[U any](updates []U) []U {
	updates = slices.Clone(updates)
	for i := range updates {
		if u, ok := any(&updates[i]).(interface{ Clone() U }); ok {
			updates[i] = u.Clone()
		}
	}
	return updates
}
