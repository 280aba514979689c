package fsm

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"reflect"
	"sync"
	"testing"

	"github.com/topogen/topogen/runtime/internal/race"
)

// ErrChanged means that Update returned an error after it had changed the state. It is
// detected only in tests and in builds with -race, and stops the state machine.
var ErrChanged = errors.New("fsm: Update returned an error and had changed the state")

// Limits for the cost of the checks. In a test that applies some thousands of updates,
// each failed update is checked. With a large state only some of them are, so that the
// test ends in reasonable time.
const (
	checkedBytes      = 64 << 20 // bytes of encoded states at the start: 64 failed updates of a state of 1 MiB, less than a second
	checkedBytesEach  = 64 << 10 // bytes added for each failed update: with a state of 1 MiB each 16th is checked, about a millisecond each
	checkedTwins      = 16 << 20 // bytes of encoded states for twins at the start: 4,000 updates of a state of 1 KiB
	checkedTwinsEach  = 4 << 10  // bytes added for each update: with a state of 16 KiB each 16th is checked
	checkedValues     = 1 << 20  // values at the start: 1,000 updates of a state of 1,000 values, some milliseconds
	checkedValuesEach = 64       // values added for each update: with a state of 1,000 values each 16th is checked, less than a microsecond each
	checkedValuesMax  = 8 << 20  // values of one fingerprint: more would take longer than a tenth of a second
)

// checked reports whether this process checks that a failed update left the state
// unchanged: in tests and in builds with -race, but not in benchmarks.
var checked = sync.OnceValue(func() bool {
	if testing.Testing() {
		bench := flag.Lookup("test.bench")
		return bench == nil || bench.Value.String() == ""
	}
	return race.Enabled
})

// checks limits the cost of the checks. The unit is bytes or values.
type checks struct {
	budget int // what the checks may cost now
	cost   int // of the last check; below 0: never check again
	print  func(state reflect.Value, most int) (sum uint64, values int, ok bool)
}

func newChecks(budget int) *checks { return &checks{budget: budget, print: fingerprint} }

// allow adds more to the budget and reports whether it covers another check.
func (c *checks) allow(more int) bool {
	c.budget += more
	return c.budget >= c.cost
}

func (c *checks) spend(cost int) {
	c.cost = cost
	c.budget -= cost
}

// before returns the fingerprint of a state before an update, if the budget allows it.
func (c *checks) before(state reflect.Value) (sum uint64, checks bool) {
	if c.cost < 0 || !c.allow(checkedValuesEach) {
		return 0, false
	}
	sum, values, ok := c.print(state, checkedValuesMax)
	c.spend(values)
	if !ok {
		c.cost = -1 // the state is too large, or has too many paths through pointer cycles
	}
	return sum, ok
}

// after reports whether the state still has this fingerprint.
func (c *checks) after(state reflect.Value, before uint64) bool {
	sum, values, ok := c.print(state, checkedValuesMax)
	c.budget -= values
	return !ok || sum == before
}

// unchanged checks that an update has not changed the state if it returned the error
// failed. It compares the state with a state that is rebuilt without the update. The
// returned error stops the replica.
func (r *Replicated[S, U, R]) unchanged(at uint64, c *command, e Entry, failed error) error {
	if !r.checks.allow(checkedBytesEach) {
		return nil
	}
	is, err := r.definition.StateCodec.append(nil, r.machine.State())
	if err != nil {
		return nil // a snapshot will report this error
	}
	m, left, n, err := r.rebuilt(at)
	if err != nil {
		return err
	}
	was, err := r.definition.StateCodec.append(make([]byte, 0, len(is)), m.State())
	if err != nil {
		return nil
	}
	r.checks.spend(len(is) + len(was) + len(r.replay.checkpoint))
	if !bytes.Equal(is, was) {
		return r.changed(m, is, c, e, failed)
	}
	if n > redoneMax {
		r.checkpoint(left)
	}
	return nil
}

// changed returns why the state differs from the state of m, which was rebuilt without
// the failed update: because of this update, or for another reason.
func (r *Replicated[S, U, R]) changed(m *Machine[S, U, R], is []byte, c *command, e Entry, failed error) error {
	if again, err := r.definition.StateCodec.append(nil, r.machine.State()); err == nil && !bytes.Equal(is, again) {
		return ambiguous[S]()
	}
	if _, err := r.executeOn(m, c, e); err != nil {
		return err
	}
	if now, err := r.definition.StateCodec.append(nil, m.State()); err == nil && bytes.Equal(is, now) {
		return changed[U](failed)
	}
	return fmt.Errorf("%w: entry %d, command %d: the state %T differs from the result of applying the same updates again", ErrDiverged, e.Index, e.Position, *new(S))
}

// ambiguous returns the error for a codec that encodes one state in several ways.
func ambiguous[S any]() error {
	return fmt.Errorf("%w: the codec of the state %T encodes the same state in different ways: the bytes must depend only on the value, not on the order of a map", ErrDiverged, *new(S))
}

// changed returns the error for an update type that changed the state and failed.
func changed[U any](failed error) error {
	return fmt.Errorf("%w: update %T, error %q. Update must check all conditions before it changes anything", ErrChanged, *new(U), text(failed))
}

// twin encodes the replica's Machine, and returns a Machine that is decoded from the bytes. A
// replica that starts from a snapshot has such a Machine. twin returns nil if the next update
// must not be checked.
func (r *Replicated[S, U, R]) twin() *Machine[S, U, R] {
	if r.twins == nil || !r.twins.allow(checkedTwinsEach) {
		return nil
	}
	b, err := r.machine.AppendSnapshot(nil)
	m := newMachine(r.definition, true)
	if err != nil || m.Restore(b) != nil {
		return nil // a snapshot will report this error
	}
	r.twins.spend(4 * len(b)) // the state is encoded three times and decoded once
	return m
}

// sameAs applies a command to m, which is the twin from before the command. It checks that the
// state of m is then the state of the replica, on which the command has succeeded. The returned
// error stops the replica.
func (r *Replicated[S, U, R]) sameAs(m *Machine[S, U, R], c *command, e Entry) error {
	is, err := r.machine.AppendSnapshot(nil)
	if err != nil {
		return nil // a snapshot will report this error
	}
	failed, err := r.executeOn(m, c, e)
	if err != nil {
		return err
	}
	if failed == nil {
		was, err := m.AppendSnapshot(make([]byte, 0, len(is)))
		if err != nil || bytes.Equal(is, was) {
			return nil
		}
	}
	if again, err := r.machine.AppendSnapshot(nil); err == nil && !bytes.Equal(is, again) {
		return ambiguous[S]()
	}
	return fmt.Errorf("%w: entry %d, command %d: the update %T makes another state of a %T that was encoded and decoded, as after a restart. "+
		"It must not depend on what the codec does not keep: that two pointers or maps are the same, that a list is empty and not nil, or that the state holds the pointer to an update", ErrDiverged, e.Index, e.Position, *new(U), *new(S))
}
