package piper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/topogen/topogen/runtime/internal/chain"
	"github.com/topogen/topogen/runtime/topo"
)

// abandonAfter is how long Run waits, on an error or when the drain timeout has
// passed, for handlers that still run, and in any case for constructors. One that does not return by then is left
// behind, and its instance is not closed.
const abandonAfter = time.Second

// Spec describes a topology; generated code makes it.
type Spec struct {
	Name         string
	Topology     any // the generated type, which Unit.Topology returns
	Processors   []Processor
	Edges        []Edge
	Workers      int
	Batch        int
	Rebalance    time.Duration
	DrainTimeout time.Duration
	MessageLimit int                      // see the option; 0: 64 MiB
	CycleLimit   int                      // messages that one queue within a cycle may hold; 0: the larger of 262,144 and 16 times its capacity
	Errors       func() (Recorder, error) // opens what Run records errors with; may be nil
	Supervisor   Supervisor               // of the processors that have a Watch
	FaultLog     time.Duration            // how often what went wrong is logged; 0: never
}

// Pool runs a topology.
type Pool struct {
	spec       Spec
	options    options
	processors []*processor
	edges      []edge
	groups     []*group
	externals  []*External
	tickers    []*Ticker
	workers    []*Worker
	chains     []int // of each processor: what it is connected to
	batch      int
	threads    int // GOMAXPROCS
	stepper    *Stepper
	monitor    monitor
	recorder   Recorder    // nil: errors are not recorded
	rebalancer *rebalancer // nil where there is nothing to choose
	place      func(*placement) (to []int, pays bool)
	pinned     bool // no instance is donated: the tests of placements

	began      time.Time
	handlerCtx context.Context // of handlers: ends when Run gives up
	serveCtx   context.Context // of Serve: ends when Run begins to drain
	stopServe  context.CancelFunc
	abandon    context.CancelFunc

	idle            atomic.Int32 // parked workers
	started         atomic.Bool
	stopping        atomic.Bool   // no more from outside
	ended           atomic.Bool   // workers are to return
	done            chan struct{} // closed with ended
	running         sync.WaitGroup
	endedGoroutines atomic.Int64   // of those that run: what they did before is seen by who has loaded it
	starters        sync.WaitGroup // goroutines that make instances: nobody needs these after the end

	supervision  sync.Mutex   // orders of watched instances, and the supervisor
	closed       bool         // Run is about to return; guarded by supervision
	abandonedNow atomic.Int32 // goroutines that hang
	lateOnce     sync.Once
	lateOutside  *atomic.Uint64 // in the process of an isolated instance: counts late sends
	faulty       bool           // some processor has faults to count
	outside      func() error   // in the process of an isolated instance: passes on what Serve has sent

	mu               sync.Mutex
	err              error
	failures         errorList // of instances that were given up
	lateErrors       errorList // of handlers that came back when Run had ended
	unfinishedGroups int       // groups that have not finished
	solos            []*Worker // outside the pool
}

// New makes a pool and the instances in spec. Nothing runs before Run.
func New(spec Spec, opts ...Option) (*Pool, error) {
	p := &Pool{spec: spec, done: make(chan struct{}), handlerCtx: context.Background(), place: (*placement).plan}
	p.options = options{
		workers: spec.Workers, batch: spec.Batch, rebalance: spec.Rebalance, drainTimeout: spec.DrainTimeout,
		cycleLimit:   spec.CycleLimit,
		messageLimit: cmp.Or(spec.MessageLimit, messageLimitDefault),
		errors:       spec.Errors,
	}
	if err := p.options.apply(opts); err != nil {
		return nil, err
	}
	p.batch = max(1, p.options.batch)
	p.threads = runtime.GOMAXPROCS(0)
	p.began = time.Now()
	p.monitor = monitor{pool: p, wake: make(chan struct{}, 1)}
	n := p.options.workers
	if n == 0 {
		n = runtime.GOMAXPROCS(0)
	}
	for i := range n {
		p.workers = append(p.workers, newWorker(p, i))
	}
	p.build()
	p.chains = chains(p.spec)
	if err := p.construct(); err != nil {
		return nil, err
	}
	return p, nil
}

// build makes processors, edges and groups from the spec.
func (p *Pool) build() {
	for i := range p.spec.Processors {
		s := &p.spec.Processors[i]
		for len(p.groups) <= s.Group {
			p.groups = append(p.groups, &group{pool: p, index: len(p.groups), onTimer: true})
		}
		proc := &processor{Processor: *s, pool: p, index: i, group: p.groups[s.Group]}
		if s.Events || s.Watch != nil {
			proc.faults = new(faults) // here, as Snapshot may be asked before Run
			p.faulty = true
		}
		p.processors = append(p.processors, proc)
	}
	p.edges = make([]edge, len(p.spec.Edges))
	members, stays := make([]int, len(p.groups)), make([]bool, len(p.groups))
	for _, proc := range p.processors {
		members[proc.Group]++
		proc.group.cyclic = members[proc.Group] > 1
		if proc.Ping || proc.Serve {
			proc.group.onTimer = false
		}
		stays[proc.Group] = stays[proc.Group] || proc.Stays
	}
	timed := make([]bool, len(p.groups))
	joined := make(map[[2]*group]bool)
	for i, e := range p.spec.Edges {
		p.edges[i].Edge = e
		to := p.processors[e.To].group
		if e.From < 0 {
			timed[to.index] = true
			continue
		}
		from := p.processors[e.From].group
		p.edges[i].inCycle = from == to
		if from == to {
			to.cyclic = true
			continue
		}
		to.onTimer = false
		if !joined[[2]*group{from, to}] {
			joined[[2]*group{from, to}] = true
			from.down = append(from.down, to)
			to.openInputs++
		}
	}
	for i, g := range p.groups {
		g.onTimer = g.onTimer && timed[i] || stays[i]
		if g.onTimer {
			g.openInputs++ // closed by stop
		}
	}
}

// Adopt makes instance, whose Unit is u and whose sender is out, one of those of the
// processor with that index. New calls it for each instance of the spec, in order.
func (p *Pool) Adopt(processor int, instance Cell, u *Unit, out *Out) {
	proc := p.processors[processor]
	u.cell, u.proc, u.out = cell{instance}, proc, out
	u.index = int32(len(proc.units))
	u.controlNote = note{kind: noteControl, unit: u}
	u.longTurn = true // perhaps: the first turn is timed
	out.unit = u
	proc.units = append(proc.units, u)
	if proc.Events {
		proc.boxes = append(proc.boxes, eventBox{})
	}
	if proc.Watch != nil {
		u.addWatch()
	}
	proc.group.units = append(proc.group.units, u)
	if proc.Ping {
		u.ping = pingActive
	}
	u.serving = proc.Serve
	if proc.Ping || proc.Serve {
		proc.group.sources++
	}
	if proc.Blocking || proc.Serve {
		u.worker.Store(p.newSolo(u))
		return
	}
	u.targetWorker.Store(int32(p.initialWorker(u)))
	u.worker.Store(p.workers[u.targetWorker.Load()])
}

// Run runs the topology until all has finished, ctx has ended and all is
// drained, or a handler has failed.
func (p *Pool) Run(ctx context.Context) error {
	if !p.started.CompareAndSwap(false, true) {
		return ErrStarted
	}
	if p.options.errors == nil {
		return p.runOnce(ctx)
	}
	r, err := p.openErrors()
	if err != nil {
		p.finish(err) // callers from outside wait for the end of Run
		return err
	}
	if r == nil {
		return p.runOnce(ctx)
	}
	p.recorder = r
	err = p.runOnce(ctx)
	if failed := r.Close(); err == nil {
		return failed
	} else if failed != nil {
		return errors.Join(err, failed)
	}
	return err
}

// openErrors opens what Run records errors with.
func (p *Pool) openErrors() (r Recorder, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("pool: opening what errors are recorded with: %w\n%s", chain.OfPanic(cause), debug.Stack())
		}
	}()
	return p.options.errors()
}

func (p *Pool) runOnce(ctx context.Context) error {
	p.prepare(ctx)
	defer p.abandon()
	defer p.logSkipped()
	if err := p.initBefore(ctx); err != nil {
		p.finish(err)
		if p.err != err { // the supervisor has ended Run for it
			err = errors.Join(p.result(), err)
		}
		return p.closeAll(err)
	}
	p.start()
	var drain <-chan time.Time
	stop := ctx.Done()
	for ended := false; !ended; {
		select {
		case <-p.done:
			ended = true
		case <-stop:
			stop = nil
			p.stop()
			timer := time.NewTimer(p.options.drainTimeout)
			defer timer.Stop()
			drain = timer.C
		case <-drain:
			p.finish(p.drainError())
		}
	}
	return p.closeAll(p.wait())
}

// prepare makes the contexts of handlers.
func (p *Pool) prepare(ctx context.Context) {
	p.handlerCtx, p.abandon = context.WithCancel(context.WithoutCancel(ctx))
	p.serveCtx, p.stopServe = context.WithCancel(p.handlerCtx)
	p.prepareWatches()
	for _, g := range p.groups {
		if len(g.units) > 0 {
			p.unfinishedGroups++
		}
	}
}

// start lets the workers go.
func (p *Pool) start() {
	p.rebalancer = newRebalancer(p)
	p.schedule()
	if p.unfinishedGroups == 0 {
		p.finish(nil)
	}
	for _, proc := range p.processors {
		for _, u := range proc.units {
			if w := u.worker.Load(); w.index < 0 {
				p.running.Add(1)
				go p.run(w)
			}
		}
	}
	p.running.Add(len(p.workers) + 1)
	for _, w := range p.workers {
		w.measuring = p.rebalancer != nil
		go p.run(w)
	}
	go p.monitor.run()
	if list := p.timedWatches(); len(list) > 0 {
		p.running.Add(1)
		go p.watchHealth(list)
	}
	if p.faulty && p.spec.FaultLog > 0 {
		p.running.Add(1)
		go p.logFaults(p.spec.FaultLog)
	}
	if p.rebalancer != nil {
		p.running.Add(1)
		go p.rebalancer.run()
	}
}

// schedule does, before any worker runs, what is due from the start.
func (p *Pool) schedule() {
	for _, t := range p.tickers {
		t.to.worker.Load().after(t.every, t)
	}
	for _, proc := range p.processors {
		for _, u := range proc.units {
			u.worker.Load().schedule(u)
		}
	}
	for _, g := range p.groups {
		if len(g.units) > 0 {
			g.mu.Lock()
			g.beginClosing() // nothing comes in, and nothing acts of itself
		}
	}
}

// stop closes everything that comes from outside; the rest is drained.
func (p *Pool) stop() {
	p.stopping.Store(true)
	p.sourcesDone()
	p.stopServe()
	for _, x := range p.externals {
		x.stop()
	}
	for _, proc := range p.processors {
		for _, u := range proc.units {
			if proc.Ping {
				u.signal(controlStop)
			}
			if !proc.Ping && u.watch() != nil {
				u.signal(controlStop) // it may be down
			}
			if proc.Serve {
				u.worker.Load().wakeUp()
			}
		}
	}
	for _, g := range p.groups {
		if g.onTimer {
			g.inputClosed()
		}
	}
}

// fail ends Run with err, now.
func (p *Pool) fail(err error) {
	if e, ok := errors.AsType[*HandlerError](err); ok {
		p.record(e)
	}
	p.finish(err)
}

// failOnPanic, deferred, turns a panic of the pool's own goroutines, or of a logger
// that they call, into the error of Run.
func (p *Pool) failOnPanic(who string) {
	if cause := recover(); cause != nil {
		p.finish(fmt.Errorf("pool: %s: panic: %v\n%s", who, cause, debug.Stack()))
	}
}

// finish ends Run; the first call decides how.
func (p *Pool) finish(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended.Load() {
		if e, ok := err.(*HandlerError); ok {
			// A handler whose context has ended may say just that.
			if signal, _ := chain.Sort(e.Err, context.Canceled, topo.ErrStopping); signal == nil {
				p.lateErrors.add(e)
			}
		}
		return
	}
	p.err = err
	p.ended.Store(true)
	if err != nil && p.abandon != nil {
		p.abandon()
	}
	for _, x := range p.externals {
		x.end()
	}
	close(p.done)
	for _, w := range slices.Concat(p.workers, p.solos) {
		w.hold.Or(holdYield)
		w.wakeUp()
	}
}

// groupFinished is told that all of a group is done.
func (p *Pool) groupFinished() {
	p.mu.Lock()
	p.unfinishedGroups--
	last := p.unfinishedGroups == 0
	p.mu.Unlock()
	if last {
		p.finish(nil)
	}
}

// runsNoMore is called at the end of a goroutine that runs handlers, or takes
// instances from one that does.
func (p *Pool) goroutineEnded() {
	p.endedGoroutines.Add(1)
	p.running.Done()
}

// wait waits for the workers and returns what ended Run.
func (p *Pool) wait() error {
	gone, made := make(chan struct{}), make(chan struct{})
	go func() {
		p.running.Wait()
		p.stopWakeups()
		close(gone)
		p.starters.Wait()
		close(made)
	}()
	if p.err == nil {
		<-gone
	}
	timer := time.NewTimer(abandonAfter)
	defer timer.Stop()
	select {
	case <-made:
	case <-timer.C:
		p.endedGoroutines.Load() // one still runs, and nobody has seen the end of the others
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.result()
}

func (p *Pool) log() *slog.Logger {
	if p.options.logger != nil {
		return p.options.logger
	}
	return slog.Default()
}

// clock is the time since the pool began, in nanoseconds.
func (p *Pool) clock() int64 {
	if p.stepper != nil {
		return p.stepper.now.Load()
	}
	return int64(time.Since(p.began))
}

// time is the instant of a clock reading.
func (p *Pool) time(clock int64) time.Time {
	return p.began.Add(time.Duration(clock))
}
