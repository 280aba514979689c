package piper_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/topo"
)

// diary records events, from any goroutine.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) note(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

// each runs a test on workers and under the Stepper.
func each(t *testing.T, make func(t *testing.T) *topology) {
	t.Run("workers", func(t *testing.T) { make(t).runWhole(t) })
	t.Run("stepper", func(t *testing.T) {
		top := make(t)
		if err := top.pool.Stepper(1).Run(); err != nil {
			t.Fatal(err)
		}
		top.check(t, true)
	})
}

// TestFinishUpstreamFirst checks that a message sent by Finish is handled by its
// receiver before the receiver's own Finish.
func TestFinishUpstreamFirst(t *testing.T) {
	each(t, func(t *testing.T) *topology {
		var d diary
		t.Cleanup(func() {
			want := []string{"finish 0", "receive 1 last", "finish 1", "receive 2 last", "finish 2"}
			if !slices.Equal(d.lines, want) {
				t.Errorf("%q, want %q", d.lines, want)
			}
		})
		stage := func(i int, edge int) proc {
			return proc{
				receive: func(*cell, *message) error { d.note("receive %d last", i); return nil },
				finish: func(c *cell) error {
					d.note("finish %d", i)
					if edge < 0 {
						return nil
					}
					return c.send(edge, 0, message{})
				},
			}
		}
		return build(t, []proc{stage(0, 0), stage(1, 1), stage(2, -1)}, []edge{{from: 0, to: 1}, {from: 1, to: 2}}, piper.Workers(2))
	})
}

// TestFinishWithinACycle checks that Finish of all members of a cycle is called in file
// order, that the messages sent within the cycle are handled, and that the downstream
// processors finish after that.
func TestFinishWithinACycle(t *testing.T) {
	each(t, func(t *testing.T) *topology {
		var d diary
		var handled [3]int
		t.Cleanup(func() {
			if want := []string{"finish 1", "finish 2", "finish 3 after 22"}; !slices.Equal(d.lines, want) {
				t.Errorf("%q, want %q", d.lines, want)
			}
		})
		member := func(i, next int) proc {
			return proc{
				receive: func(c *cell, m *message) error {
					handled[i]++
					if m.hops == 0 {
						return nil
					}
					return c.send(next, 0, message{hops: m.hops - 1})
				},
				finish: func(c *cell) error {
					d.note("finish %d", i)
					return c.send(next, 0, message{hops: 10})
				},
			}
		}
		return build(t, []proc{
			feed(0, 100, 1), member(1, 1), member(2, 2),
			{finish: func(*cell) error {
				d.note("finish 3 after %d", handled[1]+handled[2]-100)
				return nil
			}},
		}, []edge{{from: 0, to: 1}, {from: 1, to: 2}, {from: 2, to: 1}, {from: 2, to: 3}}, piper.Workers(2))
	})
}

// TestAGroupWaitsForItsOwnSources checks that a member with Ping keeps its group open
// after all inputs are closed.
func TestAGroupWaitsForItsOwnSources(t *testing.T) {
	each(t, func(t *testing.T) *topology {
		pings := 0
		t.Cleanup(func() {
			if pings != 51 {
				t.Errorf("Ping was called %d times before the end", pings)
			}
		})
		return build(t, []proc{
			feed(0, 1, 1),
			{
				ping: func(*cell) error {
					if pings++; pings > 50 {
						return topo.Done
					}
					return nil
				},
				finish: func(*cell) error { return nil },
			},
		}, []edge{{from: 0, to: 1}})
	})
}

// TestNothingToDoEndsAtOnce checks that a topology without sources calls Finish and
// Close and ends.
func TestNothingToDoEndsAtOnce(t *testing.T) {
	each(t, func(t *testing.T) *topology {
		return build(t, []proc{
			{finish: func(*cell) error { return nil }},
			{finish: func(*cell) error { return nil }, instances: 3},
		}, []edge{{from: 0, to: 1}, {from: 0, to: 0}})
	})
	each(t, func(t *testing.T) *topology { return build(t, nil, nil) })
}
