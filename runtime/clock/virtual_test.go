package clock

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/topogen/topogen/internal/test/speed"
)

// virtually runs f in virtual time, which only advances in time.Sleep, and returns the
// error of f. f must not end the test.
func virtually(t *testing.T, f func() error) (err error) {
	t.Helper()
	synctest.Test(t, func(*testing.T) { err = f() })
	return err
}

// check is rapid.Check for a property in virtual time. draw runs before, in real time,
// and its result is passed to holds.
func check[T any](t *testing.T, draw *rapid.Generator[T], holds func(T) error) {
	t.Helper()
	speed.Checks(t, 40, 100, 1000)
	rapid.Check(t, func(rt *rapid.T) {
		input := draw.Draw(rt, "input")
		if err := virtually(t, func() error { return holds(input) }); err != nil {
			rt.Fatal(err)
		}
	})
}

// pauses generates times between calls: zero, a few ns, or up to an hour.
func pauses() *rapid.Generator[time.Duration] {
	within := func(low, high time.Duration) *rapid.Generator[time.Duration] {
		return rapid.Map(rapid.Int64Range(int64(low), int64(high)), func(ns int64) time.Duration { return time.Duration(ns) })
	}
	return rapid.OneOf(
		rapid.Just(time.Duration(0)), rapid.Just(time.Nanosecond), within(2, 100), within(100, 100*time.Microsecond),
		within(100*time.Microsecond, 10*time.Millisecond), rapid.Just(time.Hour),
	)
}

// action happens between two bursts of calls.
type action int

const (
	nothing action = iota
	windUp
	reset
)

// burst is a number of calls with the same pause after each.
type burst struct {
	calls int
	pause time.Duration
	then  action
}

func (b burst) String() string {
	return fmt.Sprintf("%d calls each %v, then %d", b.calls, b.pause, b.then)
}

func bursts() *rapid.Generator[[]burst] {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) burst {
		return burst{
			calls: rapid.OneOf(rapid.IntRange(1, 3), rapid.IntRange(1, 300)).Draw(t, "calls"),
			pause: pauses().Draw(t, "pause"),
			then:  rapid.SampledFrom([]action{nothing, nothing, nothing, windUp, reset}).Draw(t, "then"),
		}
	}), 1, 12)
}
