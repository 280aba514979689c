package piper_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/route"
	"github.com/topogen/topogen/runtime/topo"
)

const (
	processorsMax = 12
	largeMax      = 40     // maximum number of processors of a large topology
	largeSent     = 10_000 // minimum number of messages that its sources send
	instancesMax  = 4
	hopsMax       = 4       // a message causes at most 2^4 further messages
	spinMin       = 3_000   // minimum rounds of arithmetic, about a nanosecond each
	spinMax       = 500_000 // maximum; long enough that instances are handed over
	napMax        = 60 * time.Millisecond
)

// random is a topology drawn from a seed, with the events of its run.
type random struct {
	procs []proc
	edges []edge
	opts  []piper.Option

	quota    int        // number of messages of a source
	spin     int        // maximum rounds of arithmetic in a handler call
	naps     bool       // handlers sometimes sleep, in virtual time
	shuffle  *rand.Rand // moves instances at random
	ending   ending     // how the run ends
	endAfter int64      // handler calls
	failing  int        // processor whose handler fails

	failures *failures // nil if handlers do not fail, except to end the run

	top     *topology
	calls   atomic.Int64
	failed  atomic.Bool
	stop    func()
	stopped atomic.Bool
}

// ending is how the run of a topology ends.
type ending int

const (
	endDone ending = iota // when all work is done
	endStop               // Run's context ends
	endError
	endPanic
	endPanicError
	endGoexit
)

var errRandom = errors.New("drawn from the seed")

// randomState is the state of a cell of a random topology.
type randomState struct {
	random *rand.Rand
	left   int // number of messages that a source still has to send
	out    []int
	made   int // number of earlier instances

	holding  atomic.Int32 // number of unreleased holds (topo.Hold)
	releases []func()
}

// draw draws the topology of a seed. The goroutines of workers can be ended by
// runtime.Goexit. The goroutine of a Stepper cannot, because it is the goroutine of the
// test.
func draw(seed uint64, stepped bool) *random {
	return drawUpTo(processorsMax, seed, stepped)
}

// drawLarge draws a topology of up to largeMax processors and three times as many
// edges, whose sources send many messages.
func drawLarge(seed uint64) *random {
	x := drawUpTo(largeMax, seed, false)
	sources := 0
	for i, p := range x.procs {
		sends := slices.ContainsFunc(x.edges, func(e edge) bool { return e.from == i })
		if sends && (p.external || p.ping != nil || p.serve != nil) {
			sources += max(1, p.instances)
		}
	}
	x.quota = largeSent/max(1, sources) + 1
	x.spin = spinMin
	return x
}

func drawUpTo(processors int, seed uint64, stepped bool) *random {
	r := rand.New(rand.NewPCG(seed, 1))
	x := &random{quota: 5 + r.IntN(40)}
	if r.IntN(10) == 0 {
		x.quota *= 20
	}
	x.spin = spinMin
	if !stepped && r.IntN(8) == 0 {
		x.spin = spinMax
	}
	x.procs = make([]proc, 1+r.IntN(processors))
	x.drawEdges(r)
	x.drawProcs(r, seed)
	x.drawEnding(r, stepped)
	x.opts = []piper.Option{piper.Batch(1 + r.IntN(1+r.IntN(256)))}
	return x
}

// String describes the topology of a seed that failed.
func (x *random) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "ending %d after %d calls, processor %d, quota %d\n", x.ending, x.endAfter, x.failing, x.quota)
	for i, p := range x.procs {
		fmt.Fprintf(&b, "p%d: instances %d, external %v, blocking %v, ping %v, serve %v, finish %v\n",
			i, p.instances, p.external, p.blocking, p.ping != nil, p.serve != nil, p.finish != nil)
	}
	for i, e := range x.edges {
		fmt.Fprintf(&b, "e%d: %d -> %d, capacity %d, full %d, every %v\n", i, e.from, e.to, e.capacity, e.full, e.every)
	}
	return b.String()
}

func (x *random) drawEdges(r *rand.Rand) {
	n := len(x.procs)
	for range 1 + r.IntN(2*n) {
		from, to := r.IntN(n), r.IntN(n)
		if from > to && r.IntN(5) > 0 {
			from, to = to, from // most edges lead downstream
		}
		for more := true; more; more = r.IntN(3) == 0 {
			x.edges = append(x.edges, edge{from: from, to: to})
		}
	}
	for i := range x.procs {
		if r.IntN(6) == 0 {
			x.edges = append(x.edges, edge{from: timer, to: i, every: time.Duration(200+r.IntN(2000)) * time.Microsecond})
		}
	}
	group := groups(n, x.edges)
	for i := range x.edges {
		e := &x.edges[i]
		e.capacity = []int{1, 2, 3, 7, 64, 1024}[r.IntN(6)]
		if r.IntN(3) == 0 {
			e.full = full(1 + r.IntN(3))
		}
		if e.from != timer && e.full == block && group[e.from] == group[e.to] {
			e.capacity = 4 << r.IntN(7) // far below the limit of a cycle
		}
	}
}

func (x *random) drawProcs(r *rand.Rand, seed uint64) {
	fed := make([]bool, len(x.procs))
	timed := make([]bool, len(x.procs))
	for _, e := range x.edges {
		if e.from == timer {
			timed[e.to] = true
		} else {
			fed[e.to] = true
		}
	}
	for i := range x.procs {
		p := &x.procs[i]
		p.instances = 1
		if r.IntN(3) == 0 {
			p.instances += r.IntN(instancesMax)
		}
		p.blocking = r.IntN(10) == 0
		p.init = func(c *cell, _ context.Context) error {
			s := &randomState{left: x.quota, out: c.top.outEdges(c.index)}
			if before, ok := c.past.state.(*randomState); ok {
				s.left, s.made = before.left, before.made+1
			}
			s.random = rand.New(rand.NewPCG(seed, uint64(c.stamps.id)+2+uint64(s.made)<<32))
			c.state, c.past.state = s, s
			return nil
		}
		p.receive, p.tick = x.receive, x.ticked
		if r.IntN(2) == 0 {
			p.finish = x.finish
		}
		switch {
		case !fed[i] && !timed[i] && r.IntN(3) == 0:
			x.procs[i] = proc{external: true}
		case !fed[i] && !timed[i] && r.IntN(2) == 0:
			p.serve = x.serve
		case !fed[i] && r.IntN(8) > 0 || r.IntN(8) == 0:
			p.ping = x.ping
		}
	}
}

func (x *random) drawEnding(r *rand.Rand, stepped bool) {
	x.endAfter = 1 + r.Int64N(int64(20+len(x.procs)*x.quota))
	x.failing = r.IntN(len(x.procs))
	switch r.IntN(10) {
	case 0, 1:
		x.ending = endStop
	case 2:
		x.ending = []ending{endError, endPanic, endPanicError, endGoexit}[r.IntN(4)]
		if x.ending == endGoexit && stepped {
			x.ending = endError
		}
	}
}

// called runs in each handler: it takes some time and may fail.
func (x *random) called(c *cell) error {
	s := c.state.(*randomState)
	if s.random.IntN(16) == 0 {
		spin(s.random.IntN(x.spin))
	}
	if c.proc.blocking && s.random.IntN(16) == 0 {
		runtime.Gosched()
	}
	if x.naps && s.random.IntN(32) == 0 {
		time.Sleep(time.Duration(s.random.Int64N(int64(napMax))))
	}
	n := x.calls.Add(1)
	if x.failures != nil {
		if err := x.failures.fail(c, s.random); err != nil {
			return err
		}
	}
	if n < x.endAfter {
		return nil
	}
	switch x.ending {
	case endDone:
		return nil
	case endStop:
		if x.stopped.CompareAndSwap(false, true) {
			x.stop()
		}
		return nil
	}
	if c.index != x.failing || !x.failed.CompareAndSwap(false, true) {
		return nil
	}
	switch x.ending {
	case endPanic:
		panic("drawn from the seed")
	case endPanicError:
		panic(errRandom)
	case endGoexit:
		runtime.Goexit()
	}
	return errRandom
}

var spun atomic.Uint64

func spin(rounds int) {
	v := uint64(rounds)
	for range rounds {
		v = v*0x94d049bb133111eb + 1
	}
	spun.Store(v)
}

func (x *random) receive(c *cell, m *message) error {
	if err := x.called(c); err != nil {
		return err
	}
	s := c.state.(*randomState)
	if x.failures != nil {
		x.failures.hold(c, s)
	}
	if m.hops == 0 {
		return nil
	}
	for range s.random.IntN(3) {
		if err := x.emit(c, m.hops-1); err != nil {
			return err
		}
	}
	if x.failures != nil {
		return x.failures.fail(c, s.random) // after it has sent
	}
	return nil
}

func (x *random) ticked(c *cell, _ topo.Tick) error {
	if err := x.called(c); err != nil {
		return err
	}
	s := c.state.(*randomState)
	for _, release := range s.releases {
		release()
	}
	s.releases = nil
	if s.random.IntN(4) == 0 {
		return x.emit(c, 1)
	}
	return nil
}

func (x *random) finish(c *cell) error {
	if n := c.state.(*randomState).holding.Load(); n > 0 {
		c.violated("Finish was called while the instance holds %d pieces of work", n)
	}
	for range c.state.(*randomState).random.IntN(4) {
		if err := x.emit(c, 2); err != nil {
			return err
		}
	}
	return nil
}

func (x *random) ping(c *cell) error {
	s := c.state.(*randomState)
	if err := x.called(c); err != nil {
		return err
	}
	if s.left == 0 {
		return topo.Done
	}
	if s.random.IntN(40) == 0 {
		return fmt.Errorf("wrapped: %w", topo.Idle)
	}
	for range 1 + s.random.IntN(3) {
		if s.left > 0 {
			s.left--
			if err := x.emit(c, s.random.IntN(hopsMax)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (x *random) serve(c *cell, _ context.Context) error {
	s := c.state.(*randomState)
	for ; s.left > 0; s.left-- {
		if err := x.called(c); err != nil {
			return err
		}
		if err := x.emit(c, s.random.IntN(hopsMax)); err != nil {
			if !errors.Is(err, topo.ErrStopping) || x.ending == endDone && x.failures == nil {
				c.violated("a send of Serve returns %v", err)
			}
			return err
		}
	}
	return nil
}

// emit sends one message along a random edge: by key, by index, or to all instances.
func (x *random) emit(c *cell, hops int) error {
	s := c.state.(*randomState)
	if len(s.out) == 0 {
		return nil
	}
	m := message{hops: hops}
	targets := c.top.choose(s.random, s.out, &m)
	err := c.sendAll(m, targets...)
	if errors.Is(err, topo.ErrFull) {
		return nil
	}
	return err
}

// choose draws the targets of a message.
func (top *topology) choose(r *rand.Rand, out []int, m *message) []target {
	e := out[r.IntN(len(out))]
	n := len(top.cells[top.edges[e].to])
	switch r.IntN(8) {
	case 0: // broadcast
		targets := make([]target, n)
		for i := range targets {
			targets[i] = target{e, i}
		}
		return targets
	case 1: // by number
		return []target{{e, r.IntN(n)}}
	}
	m.key, m.keyed = r.Uint64(), true
	return []target{{e, route.Uint(m.key, n)}}
}
