package piper

import (
	"fmt"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"github.com/topogen/topogen/runtime/piper/placement"
	"github.com/topogen/topogen/runtime/shard"
)

const (
	rebalanceMin   = 100 * time.Microsecond // minimum interval between decisions, because waking all workers takes some microseconds
	sampleNanosMax = 200_000                // cut-off for a sampled turn: in a longer one the thread was probably preempted
)

// rebalancer reconsiders periodically which worker runs which instance. Instances are
// the shards of shard.Pages. The rebalancer asks all workers to promise that they stop
// measuring. After the last promise it makes a plan from the measurements and puts the
// new configuration into force. Then it signals each instance that must move, on its
// current worker. All of this uses notes, so the only cost for messages is a turn that
// is timed now and then.
//
// Workers do not wait for their new instances: each instance arrives when its old
// worker hands it over.
type rebalancer struct {
	pool       *Pool
	pages      *shard.Pages
	units      []*Unit // by index of the shard
	collecting atomic.Bool
	promised   chan struct{} // receives a token when all workers have promised
	window     time.Duration // period of the measurements, halved at each decision like the costs
	last       time.Time
	moves      []*Unit
	plan       *placement.Measured // the placement that led to the moves
	to         []int
}

// newRebalancer makes the rebalancer of a pool with all its instances. It returns nil
// if instances never move.
func newRebalancer(p *Pool) *rebalancer {
	if p.options.rebalance == 0 || len(p.workers) < 2 {
		return nil
	}
	r := &rebalancer{pool: p, promised: make(chan struct{}, 1)}
	for _, proc := range p.processors {
		proc.first = len(r.units)
		r.units = append(r.units, proc.units...)
	}
	return r
}

// run reconsiders the placement until the pool has ended.
func (r *rebalancer) run() {
	p := r.pool
	defer p.running.Done()
	defer p.lifecycle.failOnPanic("rebalancing")
	ticker := time.NewTicker(max(p.options.rebalance, rebalanceMin))
	defer ticker.Stop()
	r.last = time.Now()
	for {
		select {
		case <-p.done:
			return
		case <-ticker.C:
		}
		if p.busy() == 0 {
			r.last = time.Now()
			continue // all workers are idle, so there are no measurements
		}
		if err := r.reconsider(); err != nil {
			p.lifecycle.fail(fmt.Errorf("pool: rebalancing: %w", err))
			return
		}
	}
}

// reconsider makes one decision.
func (r *rebalancer) reconsider() (err error) {
	if r.pages == nil { // made late, because most topologies run for a short time or are idle
		at := make([]int, len(r.units))
		for i, u := range r.units {
			at[i] = u.worker.Load().index
		}
		if r.pages, err = shard.NewPages(len(r.pool.workers), r.config(at)); err != nil {
			return err
		}
	}
	select {
	case <-r.promised: // a leftover token: a worker was notified twice at the last decision
	default:
	}
	r.collecting.Store(true)
	r.notifyWorkers()
	select {
	case <-r.pool.done:
		return nil
	case <-r.promised:
	}
	r.collecting.Store(false)
	r.moves = r.moves[:0]
	if _, err := r.pages.Reshard(r.decide); err != nil {
		return err
	}
	r.notifyWorkers()
	for _, u := range r.moves {
		u.signal(controlMove)
	}
	r.log()
	return nil
}

// log logs at level debug which instances move and why: the cost of each processor, and
// the load of the heaviest worker before and after, all within the window.
func (r *rebalancer) log() {
	log := r.pool.log()
	if len(r.moves) == 0 || !log.Enabled(r.pool.handlerCtx, slog.LevelDebug) {
		return
	}
	p := r.plan
	costs := make([]any, 0, len(r.pool.processors))
	for _, proc := range r.pool.processors {
		cost := int64(0)
		for i := range proc.units {
			cost += p.Cost[proc.first+i]
		}
		if len(proc.units) > 0 {
			costs = append(costs, slog.Duration(proc.Name, time.Duration(cost)))
		}
	}
	log.LogAttrs(r.pool.handlerCtx, slog.LevelDebug, "topogen: instances move to other workers",
		slog.Int("moves", len(r.moves)), slog.Duration("window", p.Window),
		slog.Duration("heaviest_before", time.Duration(p.Load(p.At))),
		slog.Duration("heaviest_after", time.Duration(p.Load(r.to))),
		slog.Group("costs", costs...))
}

// notifyWorkers makes all workers read the pages.
func (r *rebalancer) notifyWorkers() {
	for _, w := range r.pool.workers {
		if w.costs.posted.CompareAndSwap(false, true) {
			w.post(&w.costs.note)
		}
	}
}

// costs measures the costs of a worker's instances and links for the rebalancer.
type costs struct {
	measuring bool        // the costs of instances and links are measured
	variance  float64     // of the sum of the costs measured here
	epoch     uint64      // the configuration of the rebalancer that this worker has seen
	note      note        // makes the worker read the pages
	posted    atomic.Bool // note is in the inbox
}

// readPages adopts the configuration in force, and promises to stop measuring if
// the rebalancer asks for it.
func (c *costs) readPages(w *Worker) {
	c.posted.Store(false)
	r := w.pool.rebalancer
	if epoch := r.pages.Epoch(); epoch != c.epoch {
		c.epoch, c.measuring = epoch, true
	}
	if r.collecting.Load() {
		c.measuring = false
		if r.pages.Promise(w.index, c.epoch) {
			select {
			case r.promised <- struct{}{}:
			default:
			}
		}
	}
}

// add adds a turn to the cost of u. A turn with a weight above 1 represents
// several turns and was drawn at random, so its square is its contribution to the
// variance of the sum.
func (c *costs) add(u *Unit, took time.Duration, weight int32) {
	if weight > 1 {
		took = min(took, sampleNanosMax)
	}
	cost := int64(took) * int64(weight)
	u.busy.StoreRelease(u.busy.Load() + uint64(cost))
	if !c.measuring {
		return
	}
	u.cost += cost
	if weight > 1 {
		c.variance += float64(cost) * float64(cost)
	}
}

// decide makes a plan from the measurements. All workers have promised, so until the
// next epoch the costs belong to the caller.
func (r *rebalancer) decide([][]int) ([][]int, error) {
	now := time.Now()
	r.window = r.window/2 + now.Sub(r.last)
	r.last = now
	p := r.measured()
	p.Window = r.window
	to, pays := r.pool.place(p)
	if !pays {
		return r.config(p.At), nil
	}
	r.plan, r.to = p, to
	for i, w := range to {
		if w != p.At[i] {
			r.units[i].targetWorker.Store(int32(w))
			r.moves = append(r.moves, r.units[i])
		}
	}
	return r.config(to), nil
}

// measured collects the costs and halves them. So a cost is bounded and follows the
// load.
func (r *rebalancer) measured() *placement.Measured {
	variance := 0.0
	for _, w := range r.pool.workers {
		variance += w.costs.variance
		w.costs.variance /= 4 // the square of half the costs
	}
	p := &placement.Measured{
		Ended:    r.pool.ended.Load,
		StdError: int64(math.Sqrt(variance)),
		Workers:  len(r.pool.workers),
		Cost:     make([]int64, len(r.units)),
		Traffic:  make([][]placement.Traffic, len(r.units)),
		At:       make([]int, len(r.units)),
	}
	for i, u := range r.units {
		p.At[i] = u.worker.Load().index
		p.Cost[i] = u.cost
		u.cost /= 2
		for l := u.inlinks.Load(); l != nil; l = l.nextIn.Load() {
			if l.out == nil || l.hops == 0 {
				continue
			}
			if from := l.out.unit.proc.first + int(l.out.unit.index); from != i {
				p.Traffic[i] = append(p.Traffic[i], placement.Traffic{Other: from, Turns: int64(l.hops)})
				p.Traffic[from] = append(p.Traffic[from], placement.Traffic{Other: i, Turns: int64(l.hops)})
			}
			l.hops /= 2
		}
	}
	return p
}

// config lists the instances of each worker. An instance with a goroutine of its own is
// listed under its initial worker.
func (r *rebalancer) config(at []int) [][]int {
	config := make([][]int, len(r.pool.workers))
	for i, w := range at {
		if w < 0 {
			w = r.pool.initialWorker(r.units[i])
		}
		config[w] = append(config[w], i)
	}
	return config
}

// chains numbers the processors that exchange messages directly or through others.
func chains(s Spec) []int {
	var edges [][2]int
	for _, e := range s.Edges {
		if e.From >= 0 && !s.Processors[e.From].External {
			edges = append(edges, [2]int{e.From, e.To})
		}
	}
	return placement.Chains(len(s.Processors), edges)
}
