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

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/topo"
)

// desk holds the messages of a cell that replies later. It is the state of a clerk,
// next to its state in a random topology.
type desk struct {
	mu       sync.Mutex
	done     []message // messages that Woken must handle
	received int       // used only in turns
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

// clerks makes some processors reply later: Woken handles a message after a goroutine
// of the instance has processed it.
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
	d.received++
	c.BeginReply()
	if k.stepped {
		d.put(m1)
		c.Wake()
		return nil
	}
	n := c.state.(*randomState).random.IntN(4)
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
	for !c.MustYield() {
		m, ok := d.take()
		if !ok {
			return nil
		}
		d.answered++
		c.EndReply()
		if err := k.x.receive(c, &m); err != nil {
			return err
		}
	}
	c.Wake()
	return nil
}

// check checks that all messages got their reply, unless a handler has failed.
func (k *clerks) check(t *testing.T, seed uint64) (received int) {
	t.Helper()
	k.at.Wait()
	for c, d := range k.desks {
		received += d.received
		if !k.x.failed.Load() && (d.received != d.answered || len(d.done) > 0) {
			t.Fatalf("seed %d: processor %d got %d messages and replied to %d: %v\n%s", seed, c.index, d.received, d.answered, k.x, speed.Repeat(t, seed))
		}
	}
	return received
}

// TestPendingRepliesStepped runs random topologies in which some instances reply later, under the
// Stepper, each of them twice.
func TestPendingRepliesStepped(t *testing.T) {
	speed.NoRace(t)
	from, to := speed.Seeds(t, 50, 200, 5000)
	received := 0
	for seed := from; seed < to; seed++ {
		var traces [2]uint64
		for i := range traces {
			x := draw(seed, true)
			k := x.hireClerks(seed, true)
			traces[i] = stepOne(t, x, seed)
			received += k.check(t, seed)
		}
		if traces[0] != traces[1] {
			t.Fatalf("seed %d: two runs differ\n%s", seed, speed.Repeat(t, seed))
		}
	}
	if received == 0 {
		t.Error("no processor got a message")
	}
}

// TestPendingRepliesWorkers runs such topologies on workers, and in virtual time with instances
// that are moved at random.
func TestPendingRepliesWorkers(t *testing.T) {
	from, to := speed.Seeds(t, 12, 50, 1250)
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

const answerAfter = 2 * time.Second // in virtual time; shorter than hangAfterVirtual

// delayedReplies is a topology of a source, an instance that replies to each of n messages after
// a time, and a receiver of the replies.
func delayedReplies(t *testing.T, n int, after time.Duration, opts ...piper.Option) *topology {
	var d desk
	return build(t, []proc{
		feed(0, n, 1),
		{
			name: "clerk",
			receive: func(c *cell, m *message) error {
				c.BeginReply()
				m1 := *m
				time.AfterFunc(after, func() { d.put(m1); c.Wake() })
				return nil
			},
			woken: func(c *cell) error {
				for m, ok := d.take(); ok; m, ok = d.take() {
					c.EndReply()
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

// TestAPendingReplyKeepsTheGroupOpen checks that no processor finishes before all replies are
// handled.
func TestAPendingReplyKeepsTheGroupOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		top := delayedReplies(t, 7, answerAfter)
		began := time.Now()
		top.runWhole(t)
		if took := time.Since(began); took < answerAfter || took > answerAfter+100*time.Millisecond {
			t.Errorf("Run takes %v", took)
		}
		if n := top.graph().Edge(1).Received(); n != 7 {
			t.Errorf("%d replies were handled, want 7", n)
		}
	})
}

// TestStopWaitsForPendingReplies checks that a stop waits for pending replies until the
// drain timeout, and that the error has their number.
func TestStopWaitsForPendingReplies(t *testing.T) {
	for name, drain := range map[string]time.Duration{"in time": answerAfter + time.Second, "too late": answerAfter - time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				top := delayedReplies(t, 3, answerAfter, piper.DrainTimeout(drain))
				result := top.start(ctx)
				synctest.Wait()
				cancel()
				err := top.result(t, result)
				if drain > answerAfter {
					if err != nil || top.graph().Edge(1).Received() != 3 {
						t.Errorf("Run returns %v, %d replies were handled", err, top.graph().Edge(1).Received())
					}
				} else if !errors.Is(err, piper.ErrDrainTimeout) || !strings.Contains(err.Error(), `processor "clerk": 3 replies pending`) {
					t.Errorf("Run returns %v", err)
				}
				top.check(t, err == nil)
				time.Sleep(time.Hour) // for goroutines that call Wake after the end
			})
		})
	}
}

// TestWokenWhenThereIsRoom checks that Wake is not lost while the instance is paused,
// and that several calls cause one call of Woken.
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
		g := top.externals[0].caller()
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
			t.Errorf("Woken was called although the queue is full")
		}
		close(go1)
		synctest.Wait()
		if woken != 1 {
			t.Errorf("Woken was called %d times when there was room, want 1", woken)
		}
		clerk.Wake()
		synctest.Wait()
		if woken != 2 {
			t.Errorf("Woken was called %d times, want 2", woken)
		}
		top.externals[0].Close()
		if err := top.result(t, result); err != nil {
			t.Fatal(err)
		}
		top.check(t, true)
	})
}

// TestAnswersFitIntoTheirCycle has an instance within a cycle with thousands of replies
// at the same time. Woken must be called when there is room, and the cycle must stay
// within its limit.
func TestAnswersFitIntoTheirCycle(t *testing.T) {
	each(t, func(t *testing.T) *topology {
		const n = 5000
		var d desk
		answers := 0
		t.Cleanup(func() {
			if answers != n {
				t.Errorf("%d replies, want %d", answers, n)
			}
		})
		received := 0
		return build(t, []proc{
			{
				ping: func(c *cell) error {
					if received++; received > n {
						return topo.Done
					}
					return c.send(0, 0, message{})
				},
				receive: func(*cell, *message) error { answers++; return nil },
			},
			{
				receive: func(c *cell, m *message) error {
					c.BeginReply()
					d.put(*m)
					if len(d.done) == n {
						c.Wake()
					}
					return nil
				},
				woken: func(c *cell) error {
					for !c.MustYield() {
						m, ok := d.take()
						if !ok {
							return nil
						}
						c.EndReply()
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

// TestEndReplyWithoutBeginReply checks that the panic of EndReply becomes an error of the handler.
func TestEndReplyWithoutBeginReply(t *testing.T) {
	top := build(t, []proc{feed(0, 1, 1), {name: "clerk", receive: func(c *cell, _ *message) error { c.EndReply(); return nil }}},
		[]edge{{from: 0, to: 1}}, piper.Logger(slog.New(slog.DiscardHandler)))
	var failed *piper.HandlerError
	if err := top.run(t, t.Context()); !errors.As(err, &failed) || failed.Processor != "clerk" || !strings.Contains(err.Error(), "EndReply without BeginReply") {
		t.Errorf("Run returns %v", err)
	}
}

// TestWokenFails checks that the error of Woken is a HandlerError that names it.
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

// TestSteppedIsReported checks that Stepped reports whether the topology runs under a
// Stepper.
func TestSteppedIsReported(t *testing.T) {
	for _, stepped := range []bool{false, true} {
		reported := !stepped
		top := build(t, []proc{{init: func(c *cell, _ context.Context) error { reported = c.Stepped(); return nil }}}, nil)
		if stepped {
			if err := top.pool.Stepper(1).Run(); err != nil {
				t.Fatal(err)
			}
		} else {
			top.runWhole(t)
		}
		if reported != stepped {
			t.Errorf("Stepped returns %v", reported)
		}
	}
}

// TestStays checks that an instance that is used from outside keeps its topology open
// exactly until the context ends, whether other processors have finished or not.
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

// TestAlarmWhenThereIsRoom checks that an alarm is not lost if an event that is
// reported before it in the same turn fills a queue.
func TestAlarmWhenThereIsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		alarms := 0
		top := build(t, []proc{
			{external: true},
			{external: true},
			{
				events: true,
				receive: func(c *cell, m *message) error {
					c.Inputs().SetAlarm(c.Inputs().Now() + time.Millisecond)
					time.Sleep(10 * time.Millisecond) // the alarm is due, and external processor 1 is closed
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
		if err := top.externals[0].caller().send(t.Context(), 0, 0, message{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond)
		top.externals[1].Close()
		time.Sleep(time.Minute)
		synctest.Wait()
		if alarms != 1 {
			t.Errorf("%d alarms, want 1", alarms)
		}
		top.externals[0].Close()
		if err := top.result(t, result); err != nil {
			t.Fatal(err)
		}
	})
}
