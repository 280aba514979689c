package shard

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"
)

// plain is a controller with unsynchronized fields, so that the race detector reports
// each violation of the contract.
type plain struct {
	t        *testing.T
	random   *rand.Rand // used by Resharding
	shards   []plainShard
	workers  []plainWorker
	decided  int // used by Resharding
	reshards int
	virtual  bool // in virtual time
	end      context.CancelFunc
}

// plainShard belongs to the worker that has the shard, except cost, which Resharding
// reads too.
type plainShard struct {
	inside atomic.Bool // detects violations in builds without -race
	calls  int
	cost   int
	owner  int // as recorded by OnSwitch
}

// plainWorker belongs to a worker, except rounds and has, which Resharding reads too.
type plainWorker struct {
	rounds int
	has    []int
	all    int
	_      [64]byte
}

func (c *plain) ProcessShard(ctx context.Context, shard int, mayUpdate bool) error {
	s := &c.shards[shard]
	if !s.inside.CompareAndSwap(false, true) {
		c.t.Errorf("two workers process shard %d", shard)
	}
	defer s.inside.Store(false)
	s.calls++
	if mayUpdate {
		s.cost++
	}
	if c.virtual {
		pass(ctx, time.Duration(s.calls*7919%5)*time.Millisecond)
	}
	return nil
}

func (c *plain) PreProcess(ctx context.Context, worker int, mayUpdate bool) error {
	w := &c.workers[worker]
	w.all++
	if mayUpdate {
		w.rounds++
	}
	if c.virtual {
		pass(ctx, time.Duration(1+w.all*104729%3)*time.Millisecond)
	} else {
		runtime.Gosched() // there are more workers than processors
	}
	return nil
}

func (c *plain) OnSwitch(worker int, shards []int) {
	c.workers[worker].has = shards
	for _, s := range shards {
		if c.shards[s].inside.Load() {
			c.t.Errorf("OnSwitch of worker %d: shard %d is still being processed", worker, s)
		}
		c.shards[s].owner, c.shards[s].cost = worker, 0
	}
}

func (c *plain) InitialSharding(workers int) ([][]int, error) {
	c.workers = make([]plainWorker, workers)
	return randomConfig(c.random, workers, len(c.shards)), nil
}

func (c *plain) Resharding(old [][]int) ([][]int, error) {
	for w, own := range old {
		if len(own) != len(c.workers[w].has) || c.workers[w].rounds < 0 {
			c.t.Errorf("worker %d has not switched: it has %v, want %v", w, c.workers[w].has, own)
		}
		for _, s := range own {
			if c.shards[s].owner != w || c.shards[s].cost < 0 {
				c.t.Errorf("shard %d belongs to worker %d, want %d", s, c.shards[s].owner, w)
			}
		}
	}
	if c.decided++; c.decided == c.reshards {
		c.end()
	}
	if c.decided%5 == 4 {
		return nil, fmt.Errorf("decision %d fails", c.decided)
	}
	return randomConfig(c.random, len(old), len(c.shards)), nil
}

func (c *plain) MaxWorkers() int { return 64 }

func runPlain(t *testing.T, seed uint64, reshards int, interval time.Duration) {
	random := rand.New(rand.NewPCG(seed, 0))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := &plain{
		t: t, random: random, shards: make([]plainShard, 1+random.IntN(40)),
		reshards: reshards, virtual: interval > time.Microsecond, end: cancel,
	}
	s := Sharder[*plain]{
		Controller: c, Workers: 1 + random.IntN(8), Interval: interval,
		OnError: func(e *Error) error {
			if e.Method != "Resharding" {
				return e
			}
			return nil
		},
	}
	if err := s.Run(ctx); err != nil {
		t.Errorf("seed %d: %v", seed, err)
	}
	if c.decided < reshards {
		t.Errorf("seed %d: only %d decisions in a minute: a worker is stuck", seed, c.decided)
	}
}

// TestRandomWorkers changes the configuration as often as possible, until there were
// enough decisions.
func TestRandomWorkers(t *testing.T) {
	for seed := range uint64(20) {
		runPlain(t, seed, 200, 1)
	}
}

// TestRandomNaps uses shards and rounds that take different times.
func TestRandomNaps(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) { runPlain(t, seed, 50, 20*time.Millisecond) })
	}
}

// TestWorkersShareNoCacheLine: the state of a worker is followed by padding.
func TestWorkersShareNoCacheLine(t *testing.T) {
	var w worker
	if size, used := unsafe.Sizeof(w), unsafe.Offsetof(w.err)+unsafe.Sizeof(w.err); size-used < 64 {
		t.Errorf("size %d, of which %d bytes are used", size, used)
	}
	if size := unsafe.Sizeof(promised{}); size < 64 {
		t.Errorf("a promise takes %d bytes", size)
	}
}
