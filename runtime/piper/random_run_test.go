package piper_test

import (
	"context"
	"errors"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/topo"
)

const (
	guestsMax   = 4
	stepsMax    = 2_000_000 // a topology that takes more steps does not end
	askTimeout  = time.Minute
	traceEnough = 20 // handler calls before a topology with only timers is stopped
)

// TestRandomStepped runs random topologies under the Stepper, each twice.
func TestRandomStepped(t *testing.T) {
	speed.NoRace(t)
	from, to := speed.Seeds(t, 100, 400, 10_000)
	for seed := from; seed < to; seed++ {
		first := step(t, seed)
		if again := step(t, seed); again != first {
			t.Fatalf("seed %d: two runs differ\n%s", seed, speed.Repeat(t, seed))
		}
	}
}

// TestRandomWorkers runs random topologies on real workers.
func TestRandomWorkers(t *testing.T) {
	from, to := speed.Seeds(t, 10, 40, 1000)
	for _, workers := range []int{1, 2, 4} {
		t.Run(strconv.Itoa(workers), func(t *testing.T) {
			for seed := from; seed < to; seed++ {
				runSeed(t, draw(seed, false), seed, workers)
			}
		})
	}
}

// TestRandomNaps runs random topologies on real workers in virtual time, with handlers
// that sleep. Instances leave their workers and come back, while all instances are
// moved at random.
func TestRandomNaps(t *testing.T) {
	from, to := speed.Seeds(t, 10, 40, 1000)
	for seed := from; seed < to; seed++ {
		for _, workers := range []int{1, 3} {
			synctest.Test(t, func(t *testing.T) {
				x := draw(seed, false)
				x.naps = true
				if workers > 1 {
					x.shuffle = rand.New(rand.NewPCG(seed, 7))
					x.opts = append(x.opts, piper.Rebalance(20*time.Millisecond))
				}
				runSeed(t, x, seed, workers)
			})
		}
	}
}

// start builds the topology, ready to be stopped.
func (x *random) start(t *testing.T, stop func(), opts ...piper.Option) {
	if x.failures == nil {
		x.top = build(t, x.procs, x.edges, append(x.opts, opts...)...)
	} else {
		x.failures.build(t, x, opts...)
	}
	x.stop = stop
	piper.ReleaseAfter(x.top.pool, 20*time.Microsecond)
	if x.shuffle != nil {
		piper.PlaceBy(x.top.pool, func(workers int, at []int) []int {
			to := slices.Clone(at)
			for i, w := range at {
				if w >= 0 {
					to[i] = x.shuffle.IntN(workers)
				}
			}
			return to
		})
	}
	if x.ending != endStop && x.runsOnTimer() {
		x.ending, x.endAfter = endStop, traceEnough
	}
}

// runsOnTimer reports whether the topology has a group whose only inputs are timers, so
// that it runs until the context ends.
func (x *random) runsOnTimer() bool {
	timed, acts := make(map[int]bool), make(map[int]bool)
	for _, e := range x.edges {
		to := x.top.group[e.to]
		if e.from == timer {
			timed[to] = true
		} else if x.top.group[e.from] != to {
			acts[to] = true
		}
	}
	for i, p := range x.procs {
		if p.ping != nil || p.serve != nil {
			acts[x.top.group[i]] = true
		}
	}
	for g := range timed {
		if !acts[g] {
			return true
		}
	}
	return false
}

// checkEnd checks how the topology ended.
func (x *random) checkEnd(t *testing.T, err error) bool {
	t.Helper()
	if x.failures != nil {
		return x.failures.checkEnd(t, x, err)
	}
	var handler *piper.HandlerError
	switch {
	case !x.failed.Load():
		if err != nil {
			t.Errorf("Run returns %v", err)
		}
	case !errors.As(err, &handler) || handler.Processor != x.top.name(x.failing):
		t.Errorf("processor %s failed, Run returns %v", x.top.name(x.failing), err)
	case (x.ending == endError || x.ending == endPanicError) && !errors.Is(err, errRandom):
		t.Errorf("Run's error does not unwrap to the handler's: %v", err)
	case x.ending != endError && len(handler.Stack) == 0:
		t.Errorf("Run's error has no stack: %v", err)
	}
	return x.top.check(t, err == nil) && !t.Failed()
}

// runSeed runs the topology of a seed on workers.
func runSeed(t *testing.T, x *random, seed uint64, workers int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	x.start(t, cancel, piper.Workers(workers), piper.Logger(slog.New(slog.DiscardHandler)))
	if x.failures != nil {
		defer time.AfterFunc(lastMax, cancel).Stop()
	}
	var senders sync.WaitGroup
	for i, d := range x.top.externals {
		if d == nil {
			continue
		}
		var callers sync.WaitGroup
		for j := range 1 + seed%guestsMax {
			g := d.caller()
			r := rand.New(rand.NewPCG(seed, 1000*uint64(i)+j))
			callers.Go(func() { x.visit(ctx, g, r) })
		}
		senders.Go(func() {
			callers.Wait()
			go d.Close() // Close may be called several times
			d.Close()
		})
	}
	err := x.top.run(t, ctx)
	senders.Wait()
	if !x.checkEnd(t, err) {
		t.Fatalf("seed %d on %d workers: %v\n%s", seed, workers, x, speed.Repeat(t, seed))
	}
}

// visit sends the messages of one caller.
func (x *random) visit(ctx context.Context, g *caller, r *rand.Rand) {
	out := x.top.outEdges(g.external.index)
	for range x.quota {
		if len(out) == 0 || !x.sendOnce(context.WithoutCancel(ctx), g, r, out) {
			return
		}
	}
}

// sendOnce sends or asks once. It returns false if the external processor is closed.
func (x *random) sendOnce(ctx context.Context, g *caller, r *rand.Rand, out []int) bool {
	m := message{hops: r.IntN(hopsMax)}
	targets := x.top.choose(r, out, &m)
	var err error
	if t := targets[0]; len(targets) == 1 && r.IntN(2) == 0 && x.top.edges[t.edge].full != dropNewest {
		timeout := askTimeout
		switch {
		case x.failures == nil && m.hops%2 == 0:
			timeout = 0 // the goroutine that asks may handle its request
		case x.failures != nil:
			timeout *= 10 // a Close that hangs may delay the restart of a group for the drain timeout
		}
		_, err = g.ask(ctx, timeout, t.edge, t.instance, m)
	} else {
		err = g.sendAll(ctx, m, targets...)
	}
	switch {
	case err == nil || errors.Is(err, topo.ErrFull):
		return true
	case x.failures != nil && errors.Is(err, topo.ErrFailed):
		return true
	case x.failures != nil && errors.Is(err, topo.ErrStopping):
	case !errors.Is(err, topo.ErrStopping) || x.ending == endDone:
		x.top.violated("caller %d: %v", g.id, err)
	}
	return false
}

// step runs the topology of a seed under the Stepper and returns a hash of its
// trace.
func step(t *testing.T, seed uint64) uint64 {
	t.Helper()
	return stepOne(t, draw(seed, true), seed)
}

func stepOne(t *testing.T, x *random, seed uint64) uint64 {
	t.Helper()
	var s *piper.Stepper
	due := false
	x.start(t, func() { due = true })
	s = x.top.pool.Stepper(seed)
	if x.failures != nil {
		x.failures.hang = s.Hang
	}
	trace := fnv.New64a()
	s.Trace(func(step uint64, processor string, instance int) {
		trace.Write([]byte(processor))
		trace.Write([]byte{byte(step), byte(instance), '\n'})
	})
	r := rand.New(rand.NewPCG(seed, 3))
	visits := x.visits()
	for n := 0; ; n++ {
		if n > stepsMax {
			t.Fatalf("seed %d does not end: %s\n%s", seed, x.top.figures(), speed.Repeat(t, seed))
		}
		if due || x.failures != nil && n == lastMaxStep {
			due = false
			s.Stop()
		}
		if len(visits) > 0 && r.IntN(8) == 0 || !s.Step() {
			if len(visits) == 0 {
				break
			}
			visits = x.oneOf(t.Context(), visits, r)
		}
	}
	if s.Err() == nil && !piper.Ended(x.top.pool) {
		t.Errorf("seed %d: the Stepper has nothing left to run, and the topology has not ended: %s", seed, x.top.figures())
	}
	if !x.checkEnd(t, s.Err()) {
		t.Fatalf("seed %d under the Stepper: %v\n%s", seed, x, speed.Repeat(t, seed))
	}
	return trace.Sum64()
}

// visit is a caller of a stepped topology with the number of messages that it still has
// to send.
type visit struct {
	caller *caller
	left   int
}

func (x *random) visits() (all []*visit) {
	for _, d := range x.top.externals {
		if d != nil {
			all = append(all, &visit{d.caller(), x.quota})
		}
	}
	return all
}

// oneOf makes one of the callers send once. A caller that has sent all its messages
// closes its external processor.
func (x *random) oneOf(ctx context.Context, visits []*visit, r *rand.Rand) []*visit {
	i := r.IntN(len(visits))
	v := visits[i]
	out := x.top.outEdges(v.caller.external.index)
	v.left--
	if v.left > 0 && len(out) > 0 && x.sendOnce(ctx, v.caller, r, out) {
		return visits
	}
	v.caller.external.Close()
	return append(visits[:i:i], visits[i+1:]...)
}

// closed reports whether Close was called for all instances.
func (top *topology) closed() bool {
	for _, c := range top.all {
		if !c.closed {
			return false
		}
	}
	return true
}
