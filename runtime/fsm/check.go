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

// ErrChanged: an Update returned an error and had changed the state. It is looked
// for in tests and in builds with -race, and ends the machine there.
var ErrChanged = errors.New("fsm: Update returned an error and had changed the state")

// What the checks may cost. A test that applies some thousands of updates has each
// failing one checked; one with a large state has some checked, and still ends.
const (
	checkedBytes      = 64 << 20 // of encoded states at once: 64 failing updates of a state of 1 MiB, less than a second
	checkedBytesEach  = 64 << 10 // for each update that fails: of a state of 1 MiB then each 16th, about a millisecond each
	checkedValues     = 1 << 20  // of fingerprints at once: 1,000 updates of a state of 1,000 values, some milliseconds
	checkedValuesEach = 64       // for each update: of a state of 1,000 values then each 16th, less than a microsecond each
	checkedValuesMax  = 8 << 20  // of one fingerprint: more takes longer than a tenth of a second
)

// checked reports whether what updates promise is checked in this process: in tests
// and in builds with -race, and not while benchmarks measure what a program does.
var checked = sync.OnceValue(func() bool {
	if testing.Testing() {
		bench := flag.Lookup("test.bench")
		return bench == nil || bench.Value.String() == ""
	}
	return race.Enabled
})

// checks bounds what checking costs.
type checks struct {
	budget int // what may be spent now
	cost   int // of the last check
	print  func(state reflect.Value, most int) (sum uint64, values int, ok bool)
}

func newChecks(budget int) *checks { return &checks{budget: budget, print: fingerprint} }

// allow reports whether another check may be made, and adds to what may be spent.
func (c *checks) allow(more int) bool {
	c.budget += more
	return c.budget >= c.cost
}

func (c *checks) spend(cost int) {
	c.cost = cost
	c.budget -= cost
}

// before is the fingerprint of a state before an update, where it may be checked.
func (c *checks) before(state reflect.Value) (sum uint64, checks bool) {
	if c.cost < 0 || !c.allow(checkedValuesEach) {
		return 0, false
	}
	sum, values, ok := c.print(state, checkedValuesMax)
	c.spend(values)
	if !ok {
		c.cost = -1 // it is too large for that, or leads to itself in too many ways
	}
	return sum, ok
}

// after reports whether the state has that fingerprint still.
func (c *checks) after(state reflect.Value, before uint64) bool {
	sum, values, ok := c.print(state, checkedValuesMax)
	c.budget -= values
	return !ok || sum == before
}

// unchanged checks that an update that has returned an error, failed, left the state
// as it was: it compares the state with one that is made without the update. The
// error is one that ends everything.
func (r *Replicated[S, U, R]) unchanged(at uint64, c *command, e Entry, failed error) error {
	if !r.checks.allow(checkedBytesEach) {
		return nil
	}
	is, err := r.definition.StateCodec.append(nil, r.machine.State())
	if err != nil {
		return nil // which is told to those who ask for a snapshot
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

// changed says why the state differs from what m, a machine without the update that
// failed, has: because of that update, or for another reason.
func (r *Replicated[S, U, R]) changed(m *Machine[S, U, R], is []byte, c *command, e Entry, failed error) error {
	if again, err := r.definition.StateCodec.append(nil, r.machine.State()); err == nil && !bytes.Equal(is, again) {
		return fmt.Errorf("%w: the codec of the state %T writes one state in different bytes: it must depend on the value alone, so on no order of a map", ErrDiverged, *new(S))
	}
	if _, err := r.executeOn(m, c, e); err != nil {
		return err
	}
	if now, err := r.definition.StateCodec.append(nil, m.State()); err == nil && bytes.Equal(is, now) {
		return changed[U](failed)
	}
	return fmt.Errorf("%w: entry %d, command %d: the state %T differs from what the same updates make of it again", ErrDiverged, e.Index, e.Position, *new(S))
}

// changed is the error of an update type that breaks its promise.
func changed[U any](failed error) error {
	return fmt.Errorf("%w: that of %T, with %q. Update must check all that it needs before it changes anything", ErrChanged, *new(U), text(failed))
}
