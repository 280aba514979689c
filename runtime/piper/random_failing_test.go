package piper_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/supervise"
	"github.com/topogen/topogen/runtime/topo"
)

const (
	hangMin     = 20 * time.Millisecond // minimum health timeout of random topologies; the maximum is ten times as long
	lastMax     = 10 * time.Second      // ends a topology with a timer whose receivers were not restarted, which would run without end
	closesMax   = 5                     // maximum number of calls of Close that hang, because each delays the test
	lastMaxStep = 50_000                // the same in steps
	failuresMax = 1_000                 // after them no handler fails: each restart causes events, whose handlers fail, too, and cause further restarts
)

// failures decides how the handlers of a random topology fail, and what follows.
type failures struct {
	seed    uint64
	rate    int // one of this many calls fails
	stepped bool
	spec    supervise.Spec
	hang    func()        // Hang of the Stepper
	count   atomic.Int32  // calls that were drawn to fail
	closes  atomic.Int32  // that hang
	holds   []bool        // by processor: whether its handlers may hold work
	release chan struct{} // ends the hangs that would not end otherwise
}

// drawFailing draws the topology of a seed whose handlers and constructors fail.
func drawFailing(seed uint64, stepped bool) *random {
	x := draw(seed, stepped)
	if x.ending != endStop {
		x.ending = endDone
	}
	x.quota = min(x.quota, 100)
	r := rand.New(rand.NewPCG(seed, 11))
	f := &failures{seed: seed, rate: []int{4, 10, 30, 100}[r.IntN(4)], stepped: stepped, release: make(chan struct{})}
	x.failures = f
	for i := range x.procs {
		f.spec.Processors = append(f.spec.Processors, f.drawProcessor(x, r, i))
	}
	f.drawHolds(x, r)
	f.drawGroups(r)
	group := groups(len(x.procs), x.edges)
	for i := range x.edges { // edges of dead letters may have made cycles
		if e := &x.edges[i]; e.from != timer && e.full == block && group[e.from] == group[e.to] {
			e.capacity = max(e.capacity, 64)
		}
	}
	return x
}

func (f *failures) drawProcessor(x *random, r *rand.Rand, i int) supervise.Processor {
	p := &x.procs[i]
	s := supervise.Processor{Name: fmt.Sprint("p", i), Instances: max(1, p.instances)}
	if p.external {
		return supervise.Processor{Name: s.Name}
	}
	if p.events = p.serve == nil && r.IntN(2) == 0; p.events && p.finish == nil {
		p.finish = func(*cell) error { return nil } // generated code has a Finish, so that all events are reported before it
	}
	if r.IntN(3) == 0 {
		return s
	}
	p.watch = &piper.Watch{Then: piper.Then(r.IntN(3)), Attempts: 1 + r.IntN(3)}
	if r.IntN(2) == 0 {
		p.watch.Timeout = hangMin + time.Duration(r.Int64N(int64(9*hangMin)))
	}
	if r.IntN(2) == 0 {
		p.watch.Startup = hangMin
	}
	p.watch.Shutdown = hangMin * time.Duration(1+r.IntN(3)) // generated code sets it for each member of a restart group
	if p.watch.Then == piper.ThenRetry && r.IntN(3) > 0 {
		p.watch.Delay, p.watch.Jitter = time.Duration(r.Int64N(int64(hangMin))), r.Float64()
		p.watch.MaxDelay = p.watch.Delay * time.Duration(r.IntN(3))
	}
	if !f.stepped && r.IntN(3) == 0 {
		p.close = f.close
	}
	p.make = f.make
	if init := p.init; r.IntN(4) == 0 {
		p.init = func(c *cell, ctx context.Context) error {
			if ctx != nil && c.number == 0 {
				if !f.stepped && p.watch.Startup > 0 && c.stamps.id%2 == 0 {
					c.top.mu.Lock()
					c.top.figure[c.index].late++
					c.top.mu.Unlock()
					time.Sleep(3 * hangMin)
				}
				return errRandom
			}
			return init(c, ctx)
		}
	}
	if p.events {
		p.event = func(c *cell, _ string) error { return f.fail(c, c.state.(*randomState).random) }
	}
	if j := r.IntN(len(x.procs)); r.IntN(2) == 0 && j != i && !x.procs[j].external && x.procs[j].serve == nil {
		p.deadLetterEdge = len(x.edges)
		x.edges = append(x.edges, edge{from: i, to: j, capacity: 64, letters: true})
	}
	s.Supervised = true
	s.Policy = []supervise.Policy{supervise.OnFailure, supervise.OnFailure, supervise.OnFailure, supervise.Always, supervise.Always, supervise.Never}[r.IntN(6)]
	if r.IntN(2) == 0 || s.Policy == supervise.Always {
		s.MaxRestarts = 1 + r.IntN(20)
	}
	if r.IntN(2) == 0 {
		s.Delay = time.Duration(r.Int64N(int64(50 * time.Millisecond)))
		s.MaxDelay = 4 * s.Delay
		s.Jitter = r.Float64()
	}
	if s.Policy == supervise.OnFailure && r.IntN(3) == 0 {
		s.Window = time.Duration(r.Int64N(int64(time.Second)))
	}
	return s
}

// drawHolds decides which processors hold work. A processor of a cycle must not,
// because its Finish may be called before its last message. Under a Stepper only
// processors with a timer hold work.
func (f *failures) drawHolds(x *random, r *rand.Rand) {
	group := groups(len(x.procs), x.edges)
	f.holds = make([]bool, len(x.procs))
	for i := range f.holds {
		f.holds[i] = r.IntN(2) == 0
	}
	timed := make([]bool, len(x.procs))
	for _, e := range x.edges {
		if e.from == timer {
			timed[e.to] = true
		} else if group[e.from] == group[e.to] {
			f.holds[e.from], f.holds[e.to] = false, false
		}
	}
	for i := range f.holds {
		f.holds[i] = f.holds[i] && (timed[i] || !f.stepped)
	}
}

// hold sometimes holds work, until the next tick or for some time.
func (f *failures) hold(c *cell, s *randomState) {
	if !f.holds[c.index] || s.random.IntN(4) > 0 {
		return
	}
	s.holding.Add(1)
	release := topo.Hold(c.ctx)
	var once sync.Once
	end := func() { once.Do(func() { s.holding.Add(-1) }); release() }
	s.releases = append(s.releases, end)
	if !f.stepped {
		time.AfterFunc(time.Duration(s.random.Int64N(int64(hangMin))), end)
	}
}

// close sometimes hangs.
func (f *failures) close(c *cell) error {
	if c.stamps.id%3 == 0 && f.closes.Add(1) <= closesMax {
		c.top.mu.Lock()
		c.top.figure[c.index].closes++
		c.top.mu.Unlock()
		<-f.release
	}
	return nil
}

func (f *failures) drawGroups(r *rand.Rand) {
	for n := range r.IntN(3) {
		g := supervise.Group{Name: strconv.Itoa(n), Strategy: supervise.Strategy(r.IntN(3))}
		for i, p := range f.spec.Processors {
			if p.Supervised && r.IntN(2) == 0 {
				g.Processors = append(g.Processors, i)
			}
		}
		if r.IntN(6) == 0 {
			g.Intensity, g.Period = 1+r.IntN(10), time.Second
		}
		r.Shuffle(len(g.Processors), func(i, j int) { g.Processors[i], g.Processors[j] = g.Processors[j], g.Processors[i] })
		f.spec.Groups = append(f.spec.Groups, g)
	}
}

func (f *failures) build(t *testing.T, x *random, opts ...piper.Option) {
	t.Helper()
	v := supervise.New(f.spec)
	if !f.stepped { // a Stepper seeds its supervisor
		v.Seed(f.seed)
	}
	top, err := constructWith(v, x.procs, x.edges, append(x.opts, append(opts, piper.Logger(slog.New(slog.DiscardHandler)))...)...)
	if err != nil {
		t.Fatal(err)
	}
	x.top = top
}

// fail makes a handler fail sometimes.
func (f *failures) fail(c *cell, r *rand.Rand) error {
	if c.proc.watch == nil || c.within == callFinish || r.IntN(f.rate) > 0 {
		return nil
	}
	if c.finished && c.within == callEvent {
		return nil // Run may end before the event is handled, and then ignores it
	}
	if f.count.Add(1) > failuresMax {
		return nil
	}
	kinds := 3
	if !f.stepped {
		kinds++
	}
	if c.proc.watch.Timeout > 0 {
		kinds++
	}
	switch kind := r.IntN(kinds); {
	case kind == 0:
		c.countLoss(false)
		return errRandom
	case kind == 1:
		c.countLoss(true)
		panic("drawn from the seed")
	case kind == 2:
		c.countLoss(true)
		panic(errRandom)
	case kind == 3 && !f.stepped:
		c.countLoss(true)
		runtime.Goexit()
	}
	c.countLoss(true)
	c.body.left = true
	c.top.mu.Lock()
	c.top.figure[c.index].hangs++
	c.top.mu.Unlock()
	if f.stepped {
		f.hang()
	}
	return f.hangs(c, c.sender, r)
}

// hangs blocks a handler until long after it was abandoned. After that, nothing that
// the handler does may have an effect.
func (f *failures) hangs(c *cell, s *sender, r *rand.Rand) error {
	top, out, timeout := c.top, c.top.outEdges(c.index), c.proc.watch.Timeout
	c.past.hung.Add(1) // must be the last access to c: generated code passes no instance to handlers
	if r.IntN(2) == 0 {
		<-f.release
	} else {
		time.Sleep(timeout + 1 + time.Duration(r.Int64N(int64(3*timeout))))
	}
	switch r.IntN(3) {
	case 0:
		panic("late")
	case 1:
		if len(out) > 0 {
			m := message{}
			c.sendWith(s, m, top.choose(r, out, &m)...)
			if !piper.Ended(top.pool) {
				top.violated("an abandoned handler sent a message")
			}
		}
	}
	return errRandom
}

// make is called first in a constructor.
func (f *failures) make(c *cell, n int) error {
	r := rand.New(rand.NewPCG(f.seed, uint64(c.stamps.id)<<32+uint64(n)))
	switch r.IntN(20) {
	case 0:
		return errRandom
	case 1:
		panic("drawn from the seed")
	case 2:
		if !f.stepped {
			runtime.Goexit()
		}
	case 3:
		if !f.stepped {
			time.Sleep(hangMin / 2)
		}
	case 4:
		if !f.stepped && c.proc.watch.Startup > 0 {
			c.top.mu.Lock()
			c.top.figure[c.index].late++
			c.top.mu.Unlock()
			time.Sleep(hangMin * time.Duration(2+r.IntN(5)))
		}
	}
	return nil
}

// checkEnd checks how the topology ended.
func (f *failures) checkEnd(t *testing.T, x *random, err error) bool {
	t.Helper()
	var handler *piper.HandlerError
	whole := false
	switch by := piper.EndedBy(x.top.pool); {
	case by == nil:
		whole = true
		if err != nil && !errors.Is(err, piper.ErrGaveUp) && !errors.Is(err, piper.ErrCloseHangs) {
			t.Errorf("Run returns %v", err)
		}
	case errors.Is(by, supervise.ErrIntensity):
	case errors.Is(by, piper.ErrDrainTimeout):
		if !f.longClose(x) {
			t.Errorf("Run returns %v", err)
		}
	case errors.Is(by, piper.ErrAbandoned):
		if hung := x.top.pool.Snapshot().Faults.Abandoned; hung <= 64 {
			t.Errorf("%d handlers were abandoned, and Run returns %v", hung, err)
		}
	case errors.As(by, &handler):
		i, _ := strconv.Atoi(handler.Processor[1:])
		if p := f.spec.Processors[i]; p.Supervised && p.Policy != supervise.Never {
			t.Errorf("Run returns %v", err)
		}
	default:
		t.Errorf("Run returns %v", err)
	}
	if whole {
		x.top.checkFaults()
	}
	if whole && !errors.Is(err, piper.ErrGaveUp) {
		x.top.checkFinished()
	}
	return x.top.check(t, whole) && !t.Failed()
}

// longClose reports whether a Close has hung whose processor has no health timeout. The
// next instance waits for it as long as a drain may take, so messages may be left.
func (f *failures) longClose(x *random) bool {
	x.top.mu.Lock()
	defer x.top.mu.Unlock()
	for i, p := range x.procs {
		if x.top.figure[i].closes > 0 && p.watch.Timeout == 0 {
			return true
		}
	}
	return false
}

// TestRandomFailuresStepped runs random topologies that fail under the Stepper,
// each twice.
func TestRandomFailuresStepped(t *testing.T) {
	speed.NoRace(t)
	from, to := speed.Seeds(t, 50, 400, 10_000)
	for seed := from; seed < to; seed++ {
		first := stepOne(t, drawFailing(seed, true), seed)
		if again := stepOne(t, drawFailing(seed, true), seed); again != first {
			t.Fatalf("seed %d: two runs differ\n%s", seed, speed.Repeat(t, seed))
		}
	}
}

// TestRandomFailuresWorkers runs random topologies that fail on real workers in virtual
// time, with handlers that hang and return too late.
func TestRandomFailuresWorkers(t *testing.T) {
	from, to := speed.Seeds(t, 25, 100, 2500)
	for seed := from; seed < to; seed++ {
		for _, workers := range []int{1, 3} {
			synctest.Test(t, func(t *testing.T) {
				x := drawFailing(seed, false)
				defer func() { // handlers that hang return
					close(x.failures.release)
					time.Sleep(time.Minute)
					x.top.report(t)
					if t.Failed() {
						t.Logf("seed %d on %d workers\n%s", seed, workers, speed.Repeat(t, seed))
					}
				}()
				runSeed(t, x, seed, workers)
			})
		}
	}
}
