package piper

import (
	"fmt"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"github.com/topogen/topogen/runtime/internal/bug"
	"github.com/topogen/topogen/runtime/shard"
)

// rebalanceMin is how often placement is reconsidered at most: waking all workers
// takes them some microseconds.
const rebalanceMin = 100 * time.Microsecond

// rebalancer reconsiders from time to time which worker runs which instance
// (rast.md 2.12, 2.13): instances are the shards of shard.Pages. It asks all
// workers to promise that they stop to measure; when the last one has, it plans
// with what they measured, puts the new configuration into force, and tells each
// instance that is to move, on the worker where it is. All of this travels as
// notes: a message costs nothing more than a turn that is timed now and then.
//
// Unlike the text's, a worker does not wait for its new instances: each comes to
// it when its old worker lets go of it, so that nobody stands still.
type rebalancer struct {
	pool       *Pool
	pages      *shard.Pages
	units      []*Unit // by shard
	collecting atomic.Bool
	promised   chan struct{} // all have promised
	window     time.Duration // what was measured in, as much forgotten as of the costs
	last       time.Time
	moves      []*Unit
	plan       *placement // that led to them
	to         []int
}

// newRebalancer makes the rebalancer of a pool whose instances are complete; nil
// where there is nothing to choose.
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

// run reconsiders placement until the pool has ended.
func (r *rebalancer) run() {
	p := r.pool
	defer p.running.Done()
	defer p.failOnPanic("rebalancing")
	ticker := time.NewTicker(max(p.options.rebalance, rebalanceMin))
	defer ticker.Stop()
	r.last = time.Now()
	for {
		select {
		case <-p.done:
			return
		case <-ticker.C:
		}
		if int(p.idle.Load()) == len(p.workers) {
			r.last = time.Now()
			continue // nobody measures anything
		}
		if err := r.reconsider(); err != nil {
			p.fail(fmt.Errorf("pool: rebalancing: %w", err))
			return
		}
	}
}

// reconsider makes one decision.
func (r *rebalancer) reconsider() (err error) {
	if r.pages == nil { // made late: most topologies are short, or idle
		at := make([]int, len(r.units))
		for i, u := range r.units {
			at[i] = u.worker.Load().index
		}
		if r.pages, err = shard.NewPages(len(r.pool.workers), r.config(at)); err != nil {
			return err
		}
	}
	select {
	case <-r.promised: // somebody was told twice the last time
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

// log says, at the level debug, that instances move, and why: what each processor
// has cost, and what the heaviest worker has to do before and after, all in the
// time of the window, of which the past is half forgotten each time (rast.md 2.12,
// the print of a resharding). Nobody waits for it.
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
			cost += p.cost[proc.first+i]
		}
		if len(proc.units) > 0 {
			costs = append(costs, slog.Duration(proc.Name, time.Duration(cost)))
		}
	}
	log.LogAttrs(r.pool.handlerCtx, slog.LevelDebug, "topogen: instances move to other workers",
		slog.Int("moves", len(r.moves)), slog.Duration("window", p.window),
		slog.Duration("heaviest_before", time.Duration(p.heaviest(p.loads(p.at)))),
		slog.Duration("heaviest_after", time.Duration(p.heaviest(p.loads(r.to)))),
		slog.Group("costs", costs...))
}

// tell sees to it that all workers look at the pages.
func (r *rebalancer) notifyWorkers() {
	for _, w := range r.pool.workers {
		if w.placementPosted.CompareAndSwap(false, true) {
			w.post(&w.placementNote)
		}
	}
}

// readPages goes over to the configuration in force, and promises where that is
// asked for.
func (w *Worker) readPlacement() {
	w.placementPosted.Store(false)
	r := w.pool.rebalancer
	if epoch := r.pages.Epoch(); epoch != w.epoch {
		w.epoch, w.measuring = epoch, true
	}
	if r.collecting.Load() {
		w.measuring = false
		if r.pages.Promise(w.index, w.epoch) {
			select {
			case r.promised <- struct{}{}:
			default:
			}
		}
	}
}

// decide plans with what was measured. All workers have promised: until the next
// epoch the costs are the caller's.
func (r *rebalancer) decide([][]int) ([][]int, error) {
	now := time.Now()
	r.window = r.window/2 + now.Sub(r.last)
	r.last = now
	p := r.measured()
	p.window = r.window
	to, pays := r.pool.place(p)
	if !pays {
		return r.config(p.at), nil
	}
	r.plan, r.to = p, to
	for i, w := range to {
		if w != p.at[i] {
			r.units[i].targetWorker.Store(int32(w))
			r.moves = append(r.moves, r.units[i])
		}
	}
	return r.config(to), nil
}

// measured adds a turn to what u has cost. A turn that stands for others was
// drawn at random: its square is what it adds to the variance of the sum.
func (w *Worker) measured(u *Unit, took time.Duration, weight int32) {
	if weight > 1 {
		took = min(took, sampleNanosMax)
	}
	cost := int64(took) * int64(weight)
	u.busy.StoreRelease(u.busy.Load() + uint64(cost))
	if !w.measuring {
		return
	}
	u.cost += cost
	if weight > 1 {
		w.variance += float64(cost) * float64(cost)
	}
}

// measured collects the costs, and halves them: what was is half forgotten each
// time, so that a cost follows the load and is bounded.
func (r *rebalancer) measured() *placement {
	variance := 0.0
	for _, w := range r.pool.workers {
		variance += w.variance
		w.variance /= 4 // as the costs are halved
	}
	p := &placement{
		ended:   r.pool.ended.Load,
		doubt:   int64(math.Sqrt(variance)),
		workers: len(r.pool.workers),
		cost:    make([]int64, len(r.units)),
		passing: make([][]passing, len(r.units)),
		at:      make([]int, len(r.units)),
	}
	for i, u := range r.units {
		p.at[i] = u.worker.Load().index
		p.cost[i] = u.cost
		if !bug.On(bug.CostGrows) {
			u.cost /= 2
		}
		for l := u.inlinks.Load(); l != nil; l = l.nextIn {
			if l.out == nil || l.hops == 0 {
				continue
			}
			if from := l.out.unit.proc.first + int(l.out.unit.index); from != i {
				p.passing[i] = append(p.passing[i], passing{from, int64(l.hops)})
				p.passing[from] = append(p.passing[from], passing{i, int64(l.hops)})
			}
			l.hops /= 2
		}
	}
	return p
}

// config lists the instances of each worker. One that has a goroutine of its own
// is counted to where it would be without.
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
