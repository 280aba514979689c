package piper_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/topo"
)

// desk is where a cell that answers later keeps what it was asked. It is the
// state of a clerk beside that of the random topology.
type desk struct {
	mu       sync.Mutex
	done     []message // that Woken is to answer
	asked    int       // the turn's own
	answered int
}

func (k *desk) put(m message) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.done = append(k.done, m)
}

func (k *desk) take() (m message, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.done) == 0 {
		return m, false
	}
	m, k.done = k.done[0], k.done[1:]
	return m, true
}

// clerks makes some processors answer later: a message is handled in Woken, when a
// goroutine of the instance's own has looked at it.
type clerks struct {
	x       *random
	stepped bool
	desks   map[*cell]*desk
	mu      sync.Mutex
	at      sync.WaitGroup
}

func (x *random) hireClerks(seed uint64, stepped bool) *clerks {
	k := &clerks{x: x, stepped: stepped, desks: make(map[*cell]*desk)}
	r := rand.New(rand.NewPCG(seed, 11))
	for i := range x.procs {
		if p := &x.procs[i]; p.receive != nil && r.IntN(2) == 0 {
			p.receive, p.woken = k.receive, k.woken
		}
	}
	return k
}

func (k *clerks) desk(c *cell) *desk {
	k.mu.Lock()
	defer k.mu.Unlock()
	d := k.desks[c]
	if d == nil {
		d = new(desk)
		k.desks[c] = d
	}
	return d
}

func (k *clerks) receive(c *cell, m *message) error {
	d, m1 := k.desk(c), *m
	d.asked++
	c.Owe()
	if k.stepped {
		d.put(m1)
		c.Wake()
		return nil
	}
	n := c.state.(*soul).random.IntN(4)
	k.at.Go(func() {
		for range n {
			runtime.Gosched()
		}
		if k.x.naps && n == 0 {
			time.Sleep(napMax / 8)
		}
		d.put(m1)
		c.Wake()
	})
	return nil
}

func (k *clerks) woken(c *cell) error {
	d := k.desk(c)
	for !c.Hold() {
		m, ok := d.take()
		if !ok {
			return nil
		}
		d.answered++
		c.Paid()
		if err := k.x.receive(c, &m); err != nil {
			return err
		}
	}
	c.Wake()
	return nil
}

// check checks that all was answered, where nothing has failed.
func (k *clerks) check(t *testing.T, seed uint64) (asked int) {
	t.Helper()
	k.at.Wait()
	for c, d := range k.desks {
		asked += d.asked
		if !k.x.failed.Load() && (d.asked != d.answered || len(d.done) > 0) {
			t.Fatalf("seed %d: processor %d was asked %d times and has answered %d: %v", seed, c.index, d.asked, d.answered, k.x)
		}
	}
	return asked
}

// TestOweStepped runs random topologies, in which some instances answer later,
// under the Stepper, each twice.
func TestOweStepped(t *testing.T) {
	from, to := seeds(t, 2)
	asked := 0
	for seed := from; seed < to; seed++ {
		var traces [2]uint64
		for i := range traces {
			x := draw(seed, true)
			k := x.hireClerks(seed, true)
			traces[i] = stepOne(t, x, seed)
			asked += k.check(t, seed)
		}
		if traces[0] != traces[1] {
			t.Fatalf("seed %d: two runs differ", seed)
		}
	}
	if asked == 0 {
		t.Error("nobody was asked anything")
	}
}

// TestOweWorkers does it on workers, and in virtual time with instances that are
// thrown about.
func TestOweWorkers(t *testing.T) {
	from, to := seeds(t, 8)
	for seed := from; seed < to; seed++ {
		for _, workers := range []int{1, 3} {
			x := draw(seed, false)
			k := x.hireClerks(seed, false)
			runSeed(t, x, seed, workers)
			k.check(t, seed)
		}
		synctest.Test(t, func(t *testing.T) {
			x := draw(seed, false)
			x.naps, x.shuffle = true, rand.New(rand.NewPCG(seed, 7))
			x.opts = append(x.opts, piper.Rebalance(20*time.Millisecond))
			k := x.hireClerks(seed, false)
			runSeed(t, x, seed, 3)
			k.check(t, seed)
		})
	}
}

const answerAfter = 2 * time.Second // in virtual time; less than a test of this package waits for Run

// owing is a topology of a source, an instance that owes an answer to each of n
// messages for a time, and one that hears of it.
func owing(t *testing.T, n int, after time.Duration, opts ...piper.Option) *topology {
	var d desk
	return build(t, []proc{
		feed(0, n, 1),
		{
			name: "clerk",
			receive: func(c *cell, m *message) error {
				c.Owe()
				m1 := *m
				time.AfterFunc(after, func() { d.put(m1); c.Wake() })
				return nil
			},
			woken: func(c *cell) error {
				for m, ok := d.take(); ok; m, ok = d.take() {
					c.Paid()
					if err := c.send(1, 0, m); err != nil {
						return err
					}
				}
				return nil
			},
			finish: func(*cell) error { return nil },
		},
		{finish: func(*cell) error { return nil }},
	}, []edge{{from: 0, to: 1}, {from: 1, to: 2}}, opts...)
}

// TestOwedKeepsTheGroupOpen: nobody finishes before the answers are there, and
// they are handled.
func TestOwedKeepsTheGroupOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		top := owing(t, 7, answerAfter)
		began := time.Now()
		top.runWhole(t)
		if took := time.Since(began); took < answerAfter || took > answerAfter+100*time.Millisecond {
			t.Errorf("Run takes %v", took)
		}
		if n := top.graph().Edge(1).Received(); n != 7 {
			t.Errorf("%d answers were handled, not 7", n)
		}
	})
}

// TestStopWaitsForWhatIsOwed: as for messages, until the drain timeout, whose
// error says how much that is.
func TestStopWaitsForWhatIsOwed(t *testing.T) {
	for name, drain := range map[string]time.Duration{"in time": answerAfter + time.Second, "too late": answerAfter - time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				top := owing(t, 3, answerAfter, piper.DrainTimeout(drain))
				result := top.start(ctx)
				synctest.Wait()
				cancel()
				err := top.result(t, result)
				if drain > answerAfter {
					if err != nil || top.graph().Edge(1).Received() != 3 {
						t.Errorf("Run returns %v, %d answers were handled", err, top.graph().Edge(1).Received())
					}
				} else if !errors.Is(err, piper.ErrDrainTimeout) || !strings.Contains(err.Error(), `processor "clerk": 3 replies pending`) {
					t.Errorf("Run returns %v", err)
				}
				top.check(t, err == nil)
				time.Sleep(time.Hour) // those who wake it when it has ended
			})
		})
	}
}

// TestWokenWhenThereIsRoom: Wake is not lost on an instance that is paused, and
// many are one.
func TestWokenWhenThereIsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		woken := 0
		go1 := make(chan struct{})
		var clerk *cell
		top := build(t, []proc{
			{external: true},
			{
				init:    func(c *cell, _ context.Context) error { clerk = c; return nil },
				receive: func(c *cell, m *message) error { return c.send(1, 0, *m) },
				woken:   func(*cell) error { woken++; return nil },
			},
			{blocking: true, receive: func(*cell, *message) error { <-go1; return nil }},
		}, []edge{{from: 0, to: 1}, {from: 1, to: 2, capacity: 2}}, piper.Workers(1))
		result := top.start(t.Context())
		g := top.doors[0].guest()
		for range 8 {
			if err := g.send(t.Context(), 0, 0, message{}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		for range 1000 {
			clerk.Wake()
			synctest.Wait()
		}
		if woken != 0 {
			t.Errorf("Woken is called though the queue is full")
		}
		close(go1)
		synctest.Wait()
		if woken != 1 {
			t.Errorf("Woken is called %d times when there is room, not once", woken)
		}
		clerk.Wake()
		synctest.Wait()
		if woken != 2 {
			t.Errorf("Woken is called %d times, not twice", woken)
		}
		top.doors[0].Close()
		if err := top.result(t, result); err != nil {
			t.Fatal(err)
		}
		top.check(t, true)
	})
}

// TestAnswersFitIntoTheirCycle: an instance that has thousands of answers at once,
// for one that asked in a cycle, is woken as often as there is room, and the cycle
// stays within its bounds.
func TestAnswersFitIntoTheirCycle(t *testing.T) {
	each(t, func(t *testing.T) *topology {
		const n = 5000
		var d desk
		answers := 0
		t.Cleanup(func() {
			if answers != n {
				t.Errorf("%d answers, not %d", answers, n)
			}
		})
		asked := 0
		return build(t, []proc{
			{
				ping: func(c *cell) error {
					if asked++; asked > n {
						return topo.Done
					}
					return c.send(0, 0, message{})
				},
				receive: func(*cell, *message) error { answers++; return nil },
			},
			{
				receive: func(c *cell, m *message) error {
					c.Owe()
					d.put(*m)
					if len(d.done) == n {
						c.Wake()
					}
					return nil
				},
				woken: func(c *cell) error {
					for !c.Hold() {
						m, ok := d.take()
						if !ok {
							return nil
						}
						c.Paid()
						if err := c.send(1, 0, m); err != nil {
							return err
						}
					}
					c.Wake()
					return nil
				},
			},
		}, []edge{{from: 0, to: 1, capacity: 16}, {from: 1, to: 0, capacity: 16}}, piper.Workers(2), piper.Batch(8))
	})
}

// TestPaidWithoutOwe is the handler's error.
func TestPaidWithoutOwe(t *testing.T) {
	top := build(t, []proc{feed(0, 1, 1), {name: "clerk", receive: func(c *cell, _ *message) error { c.Paid(); return nil }}},
		[]edge{{from: 0, to: 1}}, piper.Logger(slog.New(slog.DiscardHandler)))
	var failed *piper.HandlerError
	if err := top.run(t, t.Context()); !errors.As(err, &failed) || failed.Processor != "clerk" || !strings.Contains(err.Error(), "Paid without Owe") {
		t.Errorf("Run returns %v", err)
	}
}

// TestWokenFails: its error is that of a handler, and says so.
func TestWokenFails(t *testing.T) {
	wrong := errors.New("wrong")
	top := build(t, []proc{{
		name:  "clerk",
		init:  func(c *cell, _ context.Context) error { c.Wake(); return nil },
		ping:  func(*cell) error { return topo.Idle },
		woken: func(*cell) error { return wrong },
	}}, nil, piper.Logger(slog.New(slog.DiscardHandler)))
	var failed *piper.HandlerError
	if err := top.run(t, t.Context()); !errors.Is(err, wrong) || !errors.As(err, &failed) || failed.Method != "Woken" {
		t.Errorf("Run returns %v", err)
	}
}

// TestSteppedIsSaid: an instance knows whether it runs under a Stepper.
func TestSteppedIsSaid(t *testing.T) {
	for _, stepped := range []bool{false, true} {
		said := !stepped
		top := build(t, []proc{{init: func(c *cell, _ context.Context) error { said = c.Stepped(); return nil }}}, nil)
		if stepped {
			if err := top.pool.Stepper(1).Run(); err != nil {
				t.Fatal(err)
			}
		} else {
			top.runWhole(t)
		}
		if said != stepped {
			t.Errorf("Stepped is %v", said)
		}
	}
}

// TestStays: an instance that is used from outside keeps its topology open until
// the context ends, and no longer, whether others have come to their end or not.
func TestStays(t *testing.T) {
	for name, procs := range map[string][]proc{
		"alone":         {{stays: true}},
		"with others":   {feed(0, 3, 1), {}, {stays: true, finish: func(*cell) error { return nil }}},
		"with an input": {feed(0, 3, 1), {stays: true, finish: func(*cell) error { return nil }}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var edges []edge
				if len(procs) > 1 {
					edges = []edge{{from: 0, to: 1}}
				}
				top := build(t, procs, edges)
				ctx, cancel := context.WithTimeout(t.Context(), answerAfter)
				defer cancel()
				began := time.Now()
				if err := top.run(t, ctx); err != nil {
					t.Error(err)
				}
				top.check(t, true)
				if took := time.Since(began); took != answerAfter {
					t.Errorf("Run takes %v", took)
				}
			})
		})
	}
}

// TestAlarmWhenThereIsRoom: an alarm is not lost where the event that is told before
// it, in the same turn, fills a queue.
func TestAlarmWhenThereIsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		alarms := 0
		top := build(t, []proc{
			{external: true},
			{external: true},
			{
				events: true,
				receive: func(c *cell, m *message) error {
					c.SetAlarm(c.Now() + time.Millisecond)
					time.Sleep(10 * time.Millisecond) // the alarm is due, and door 1 is closed
					return nil
				},
				event: func(c *cell, _ string) error {
					for range 4 {
						if err := c.send(2, 0, message{}); err != nil {
							return err
						}
					}
					return nil
				},
				alarm: func(*cell) error { alarms++; return nil },
			},
			{blocking: true, receive: func(*cell, *message) error { time.Sleep(time.Second); return nil }},
		}, []edge{{from: 0, to: 2}, {from: 1, to: 2}, {from: 2, to: 3, capacity: 2}}, piper.Workers(1))
		result := top.start(t.Context())
		if err := top.doors[0].guest().send(t.Context(), 0, 0, message{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond)
		top.doors[1].Close()
		time.Sleep(time.Minute)
		synctest.Wait()
		if alarms != 1 {
			t.Errorf("%d alarms, not one", alarms)
		}
		top.doors[0].Close()
		if err := top.result(t, result); err != nil {
			t.Fatal(err)
		}
	})
}
