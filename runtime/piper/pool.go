package piper

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/topogen/topogen/runtime/internal/chain"
	"github.com/topogen/topogen/runtime/piper/placement"
	"github.com/topogen/topogen/runtime/queue"
	"github.com/topogen/topogen/runtime/topo"
)

// abandonAfter is how long Run waits for handlers that still run after an error or the
// drain timeout, and in every case for constructors. A call that takes longer is
// abandoned, and its instance is not closed.
const abandonAfter = time.Second

// originError is the difference from the present time of day after which times follow it.
const originError = 100 * time.Millisecond

// Spec describes a topology. Generated code makes it.
type Spec struct {
	Name         string
	Topology     any // the generated Topology, which Unit.Topology returns
	Processors   []Processor
	Edges        []Edge
	Workers      int
	Batch        int
	Rebalance    time.Duration
	DrainTimeout time.Duration
	MessageLimit int                      // see the option; 0 means 64 MiB
	CycleLimit   int                      // messages that one queue within a cycle may hold; 0 means the larger of 262,144 and 16 times its capacity
	Errors       func() (Recorder, error) // opens the recorder of Run; may be nil
	Supervisor   Supervisor               // supervises the processors with a Watch
	FaultLog     time.Duration            // how often the fault figures are logged; 0 means never

	// Cluster connects the pool with other nodes. It returns nil if the settings name no
	// node; then this process runs the whole topology. It may be nil.
	Cluster func(NodeSettings) (Border, error)

	// Durable makes the carrier of durable edges. It is nil if there are none.
	Durable func(DurableSettings) (DurableEdges, error)
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
	chains     []int // by processor: the number of its connected component
	batch      int
	stepper    *Stepper
	monitor    monitor
	recorder   Recorder    // nil if errors are not recorded
	rebalancer *rebalancer // nil if instances never move
	place      func(*placement.Measured) (to []int, pays bool)
	border     Border // nil if this process runs the whole topology
	durable    DurableEdges
	muted      bool // sends of instances are dropped, see Mute
	pinned     bool // for tests of the placement: no instance is donated

	began          time.Time
	origin         atomic.Pointer[time.Time] // began by the present time of day
	handlerCtx     context.Context           // for handlers; ends when Run stops waiting for them
	serveCtx       context.Context           // for Serve; ends when Run begins to drain
	stopServe      context.CancelFunc
	cancelHandlers context.CancelFunc

	started  atomic.Bool
	stopping atomic.Bool   // no messages from outside are accepted
	ended    atomic.Bool   // the goroutines of the workers must return
	held     atomic.Bool   // no call may begin, see callGate
	done     chan struct{} // closed with ended
	idle     workerSet     // workers that are parked, or poll their inbox before they park
	long     workerSet     // workers whose last timed turn was long
	offers   workerSet     // workers with long turns and further instances in their run queues
	threads  atomic.Int32  // GOMAXPROCS

	_ [lineBytes]byte // workers read the fields above in each turn, and goroutines write those below

	spinning        atomic.Int32 // number of workers that poll their inbox before they park
	running         sync.WaitGroup
	endedGoroutines atomic.Int64   // number of goroutines of running that have ended; loading it makes their writes visible
	starters        sync.WaitGroup // goroutines that construct instances; Run does not need them after the end

	calls       callGate
	lifecycle   lifecycle
	supervision supervision
	events      events
	figures     figures
	logbook     logbook
	lateOnce    sync.Once
	lateSends   *atomic.Uint64 // in the process of an isolated instance: counts late sends
	missed      *[]int         // in the process of an isolated instance: the edges of the messages for which the route selected no existing instance
	faulty      bool           // some processor has a Watch or Events
	forward     func() error   // in the process of an isolated instance: forwards each message that Serve sends

	mu               sync.Mutex
	unfinishedGroups int       // number of groups that have not finished
	solos            []*Worker // workers outside the pool
	slowSolos        int       // number of those whose instance left the pool because of long calls

	timersStopped atomic.Bool // see Interior.StopTimers

	idleLinkPeriod time.Duration
	figuresMu      sync.RWMutex // write-locked while counts of links are summed, read-locked while links are removed
}

// New makes a pool and the instances of spec. Nothing runs before Run.
func New(spec Spec, opts ...Option) (*Pool, error) {
	p := &Pool{spec: spec, done: make(chan struct{}), handlerCtx: context.Background(), place: (*placement.Measured).Plan, idleLinkPeriod: idleLinkPeriod}
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
	p.threads.Store(int32(runtime.GOMAXPROCS(0)))
	p.began = time.Now()
	p.calls.pool, p.lifecycle.pool, p.supervision.pool, p.events.pool, p.figures.pool, p.logbook.pool = p, p, p, p, p, p
	p.monitor = monitor{pool: p, wake: make(chan struct{}, 1)}
	n := p.options.workers
	if n == 0 {
		n = runtime.GOMAXPROCS(0)
	}
	p.idle, p.long, p.offers = newWorkerSet(n), newWorkerSet(n), newWorkerSet(n)
	for i := range n {
		p.workers = append(p.workers, newWorker(p, i))
	}
	p.build()
	p.chains = chains(p.spec)
	if err := p.openBorder(); err != nil {
		return nil, err
	}
	if err := p.newDurable(); err != nil {
		return nil, err
	}
	if err := p.construct(); err != nil {
		return nil, err
	}
	return p, nil
}

// openBorder calls Spec.Cluster. Without the name of a node there is no Border, and the whole
// topology runs in this process. With one, all groups stay open until schedule, because a
// group may get sources of messages when Place makes its instances.
func (p *Pool) openBorder() error {
	switch {
	case p.options.border != nil:
		p.border = p.options.border()
	case p.spec.Cluster != nil:
		s := p.options.node
		s.Logger = p.log()
		var err error
		if p.border, err = p.spec.Cluster(s); err != nil {
			return fmt.Errorf("cluster: %w", err)
		}
	}
	if p.border != nil {
		p.border.Attach(Interior{p})
		for _, g := range p.groups {
			g.openInputs++
		}
	}
	return nil
}

// build makes the processors, edges and groups of the spec.
func (p *Pool) build() {
	for i := range p.spec.Processors {
		s := &p.spec.Processors[i]
		for len(p.groups) <= s.Group {
			p.groups = append(p.groups, &group{pool: p, index: len(p.groups), onTimer: true})
		}
		proc := &processor{Processor: *s, pool: p, index: i, group: p.groups[s.Group]}
		if s.Events || s.Watch != nil {
			proc.faults = new(faults) // allocated here because Snapshot may be called before Run
			p.faulty = true
		}
		p.processors = append(p.processors, proc)
	}
	p.edges = make([]edge, len(p.spec.Edges))
	members, stays := make([]int, len(p.groups)), make([]bool, len(p.groups))
	for _, proc := range p.processors {
		members[proc.Group]++
		proc.group.cyclic = members[proc.Group] > 1
		proc.group.finishes = proc.group.finishes || proc.Finish
		if proc.Ping || proc.Serve {
			proc.group.onTimer = false
		}
		stays[proc.Group] = stays[proc.Group] || proc.Stays
	}
	timed := make([]bool, len(p.groups))
	joined := make(map[[2]*group]bool)
	for i, e := range p.spec.Edges {
		p.edges[i].Edge = e
		p.processors[e.To].receives = true
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

// construct makes the instances of all processors, in order. In a cluster, the values of the
// processors' types are made later, by the node that runs them.
func (p *Pool) construct() error {
	for i := range p.spec.Processors {
		s := &p.spec.Processors[i]
		n := s.Instances
		if s.Others && p.border == nil {
			n--
		}
		here := p.border == nil
		p.processors[i].units = make([]*Unit, 0, n)
		for j := range n {
			parts, err := s.make(topo.Instance{Processor: s.Name, Index: j, Number: n}, here)
			if err != nil {
				return err
			}
			if p.Adopt(i, parts.Cell, parts.Unit, parts.Out); here {
				cell{parts.Cell}.Adopted()
			}
		}
	}
	return nil
}

// Adopt adds an instance to the processor with the given index: instance is its Cell, u
// its Unit and out its sender. New calls it for each instance of the spec, in order.
func (p *Pool) Adopt(processor int, instance Cell, u *Unit, out *Out) {
	proc := p.processors[processor]
	u.cell, u.proc, u.out = cell{instance}, proc, out
	u.index = int32(len(proc.units))
	u.controlNote.kind = noteControl
	u.longTurn = true // unknown yet; the first turn is timed
	out.unit = u
	proc.units = append(proc.units, u)
	if proc.Events {
		proc.inputs = append(proc.inputs, &Inputs{unit: u})
	}
	if proc.Watch != nil {
		proc.watches = append(proc.watches, newWatch(u))
	}
	if g := proc.group; len(g.units) == int(u.index) {
		g.units = slices.Clip(proc.units) // the only processor so far: share its list
	} else {
		g.units = append(g.units, u)
	}
	if u.remote = p.border != nil; u.remote {
		u.targetWorker.Store(int32(p.initialWorker(u)))
		u.worker.Store(p.workers[u.targetWorker.Load()])
		return
	}
	p.activate(u)
}

// activate makes u an instance that this process runs.
func (p *Pool) activate(u *Unit) {
	proc := u.proc
	if proc.Ping {
		u.ping = pingActive
	}
	u.serving = proc.Serve
	if proc.Ping || proc.Serve {
		proc.group.sources++
	}
	if proc.Blocking || proc.Serve {
		u.worker.Store(p.monitor.newSolo(u, false))
		return
	}
	u.targetWorker.Store(int32(p.initialWorker(u)))
	u.worker.Store(p.workers[u.targetWorker.Load()])
}

// initialWorker is the index of the worker on which a unit starts.
func (p *Pool) initialWorker(u *Unit) int {
	return (p.chains[u.proc.index] + int(u.index)) % len(p.workers)
}

// External makes the External of the processor with the given index.
func (p *Pool) External(processor int) *External {
	x := &External{pool: p, proc: p.processors[processor], ended: make(chan struct{})}
	p.externals = append(p.externals, x)
	return x
}

func (p *Pool) noInstance(edge int) error {
	switch {
	case p.missed != nil:
		*p.missed = append(*p.missed, edge)
	case p.edges != nil:
		p.edges[edge].refused.Add(1)
	}
	return topo.ErrNoInstance
}

// Stepper starts the topology under a Stepper. It panics if the topology was started
// before.
func (p *Pool) Stepper(seed uint64) *Stepper {
	if !p.started.CompareAndSwap(false, true) {
		panic(ErrStarted)
	}
	s := &Stepper{
		pool: p, worker: newWorker(p, 0), random: rand.New(rand.NewPCG(seed, 0)),
		serves: make(map[*Unit]*coroutine), made: time.Now(),
	}
	s.worker.batch, s.worker.stepped, s.worker.sampler.never = 1, true, true
	s.runner = &runner{w: s.worker}
	for _, w := range p.workers {
		s.adoptNotes(w)
	}
	for _, proc := range p.processors {
		for _, u := range proc.units {
			if w := u.worker.Load(); w.index < 0 {
				s.adoptNotes(w)
			}
			u.worker.Store(s.worker)
			if u.serving {
				s.serveUnits = append(s.serveUnits, u)
			}
		}
	}
	p.stepper, p.began = s, epoch
	if p.spec.Supervisor != nil {
		p.spec.Supervisor.Seed(s.random.Uint64())
	}
	if p.durable != nil {
		s.now.Store(int64(p.durable.BeginStepped(p)))
	}
	p.workers = []*Worker{s.worker}
	return s
}

// Snapshot returns the current figures.
func (p *Pool) Snapshot() Snapshot {
	now := p.clock()
	s := Snapshot{Topology: p.spec.Name, Time: p.time(now), Elapsed: time.Duration(now), Workers: len(p.workers)}
	for _, proc := range p.processors {
		f := ProcessorFigures{Name: proc.Name}
		for _, u := range proc.units[:proc.instances()] {
			f.Instances = append(f.Instances, p.figures.instance(u, now))
		}
		if proc.faults != nil {
			faults := proc.faults.figures()
			f.Faults = &faults
		}
		s.Processors = append(s.Processors, f)
	}
	if p.faulty {
		faults := p.supervision.figures()
		s.Faults = &faults
	}
	for i := range p.edges {
		s.Edges = append(s.Edges, p.figures.edge(i))
	}
	return s
}

// busy is the number of workers that are neither parked nor about to park.
func (p *Pool) busy() int { return len(p.workers) - p.idle.len() }

// cycleLimit is the number of messages that a queue within a cycle may hold.
func (p *Pool) cycleLimit(h *queue.Head) uint64 {
	capacity := uint64(h.Capacity())
	if limit := uint64(p.options.cycleLimit); limit > 0 {
		return max(limit, capacity)
	}
	return max(cycleLimitMin, cycleFactor*capacity)
}

// MessageLimit returns the setting of the same name. Generated code calls it.
func (p *Pool) MessageLimit() int { return p.options.messageLimit }

func (p *Pool) edgeName(i int) string {
	e := &p.edges[i]
	if e.From < 0 && e.Message == "Tick" {
		return fmt.Sprintf("every %v -> %s", e.Every, p.processors[e.To].Name)
	} else if e.From < 0 { // a named timer
		return fmt.Sprintf("every %v -> %s: %s", e.Every, p.processors[e.To].Name, e.Message)
	}
	return fmt.Sprintf("%s -> %s: %s", p.processors[e.From].Name, p.processors[e.To].Name, e.Message)
}

// handlerError returns the error for what a method returned or panicked with. An err
// that cannot be inspected safely, because one of its methods panics or its chain does
// not end, is replaced (see package chain).
func (p *Pool) handlerError(u *Unit, l *Link, method string, err error) *HandlerError {
	_, err = chain.Sort(err)
	e := &HandlerError{Processor: u.proc.Name, Instance: u.Index(), Method: method, Err: err, worker: u.worker.Load().index}
	if l != nil {
		e.Edge, e.Message = p.edgeName(int(l.edge)), p.edges[l.edge].Message
	}
	return e
}

func (p *Pool) log() *slog.Logger {
	if p.options.logger != nil {
		return p.options.logger
	}
	return slog.Default()
}

// clock is the time in nanoseconds since the pool was started.
func (p *Pool) clock() int64 {
	if p.stepper != nil {
		return p.stepper.now.Load()
	}
	return int64(time.Since(p.began))
}

// callClock is the clock of the time that calls take. Under a Stepper it is real: a process does
// not run in virtual time.
func (p *Pool) callClock() int64 {
	if p.stepper != nil {
		return int64(time.Since(p.stepper.made))
	}
	return p.clock()
}

// time converts a reading of clock to a time. The clock does not count the time in which the computer
// slept. So the time of day is read again after a sleep, and after the clock of the computer was set.
// Otherwise times differ exactly as their readings.
func (p *Pool) time(clock int64) time.Time {
	if p.stepper != nil {
		return p.began.Add(time.Duration(clock))
	}
	now, origin := time.Now(), p.origin.Load()
	current := now.Add(-now.Sub(p.began)) // Round removes the monotonic clock
	if origin == nil || current.Round(0).Sub(origin.Round(0)).Abs() > originError {
		origin = &current
		p.origin.Store(origin)
	}
	return origin.Add(time.Duration(clock))
}
