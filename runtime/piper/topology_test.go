package piper_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/graph"
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/topo"
)

// proc describes a processor of a topology under test. A hook that is nil is a method
// that the processor's type does not have.
type proc struct {
	name      string
	instances int // 0: one
	external  bool
	blocking  bool
	stays     bool

	init    func(c *cell, ctx context.Context) error
	receive func(c *cell, m *message) error
	tick    func(c *cell, t topo.Tick) error
	ping    func(c *cell) error
	serve   func(c *cell, ctx context.Context) error
	finish  func(c *cell) error
	woken   func(c *cell) error
	alarm   func(c *cell) error
	close   func(c *cell) error

	drains         func(c *cell) // called at the begin of Drain, if the processor is watched
	watch          *piper.Watch
	renew          func(ctx context.Context) error // called by Renew with the context of Init
	make           func(c *cell, n int) error      // called first by the n-th Renew of an instance
	events         bool
	event          func(c *cell, what string) error
	deadLetterEdge int // edge for dead letters; 0 if there is none
}

// full is the policy of a full queue.
type full int

const (
	block full = iota
	dropOldest
	dropNewest
	fail
)

func (f full) policy() piper.Policy {
	return [...]piper.Policy{block: piper.Wait, dropOldest: piper.Drop, dropNewest: piper.Drop, fail: piper.Fail}[f]
}

const timer = -1 // the value of from for a timer

// edge describes an edge of a topology under test.
type edge struct {
	from, to int // indices of processors; from may be timer
	capacity int // 0: 1024
	full     full
	every    time.Duration
	letters  bool // carries only dead letters
}

// topology does the work of generated code, for any processors and edges: it makes the
// same calls of the pool in the same order. It records every violation of the pool's
// guarantees.
type topology struct {
	pool      *piper.Pool
	procs     []proc
	edges     []edge
	group     []int       // by processor
	cells     [][]*cell   // by processor and instance
	all       []*cell     // by id
	externals []*external // by processor; nil if it is not external

	faulty bool // a processor is watched
	figure []figures
	mu     sync.Mutex

	violations []string
	events     []event
	callers    []*caller
}

// event is a call that each instance gets once.
type event struct {
	kind string // "Init", "Finish", "Close"
	cell *cell
}

const violationsMax = 20 // enough to understand a failure, few enough to read

// build makes a topology that is ready to run.
func build(t testing.TB, procs []proc, edges []edge, opts ...piper.Option) *topology {
	t.Helper()
	top, err := construct(procs, edges, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return top
}

func construct(procs []proc, edges []edge, opts ...piper.Option) (*topology, error) {
	return constructSpec(nil, procs, edges, opts...)
}

func constructWith(v piper.Supervisor, procs []proc, edges []edge, opts ...piper.Option) (*topology, error) {
	return constructSpec(func(s *piper.Spec) { s.Supervisor = v }, procs, edges, opts...)
}

// constructSpec makes a topology whose description is changed. change may be nil.
func constructSpec(change func(*piper.Spec), procs []proc, edges []edge, opts ...piper.Option) (*topology, error) {
	top := &topology{procs: procs, edges: edges, group: groups(len(procs), edges), figure: make([]figures, len(procs))}
	spec := top.spec()
	if change != nil {
		change(&spec)
	}
	p, err := piper.New(spec, opts...)
	if err != nil {
		return nil, err
	}
	top.pool = p
	for i := range procs {
		top.cells = append(top.cells, nil)
		top.externals = append(top.externals, nil)
		if procs[i].external {
			continue
		}
		for j := range max(1, procs[i].instances) {
			c := &cell{sender: &sender{out: new(piper.Out)}, body: new(body), top: top, proc: &procs[i], index: i, number: j}
			c.stamps.id = len(top.all)
			top.cells[i] = append(top.cells[i], c)
			top.all = append(top.all, c)
			p.Adopt(i, c, &c.Unit, c.out)
			c.sender.position = c.Position()
			c.past.bodies = append(c.past.bodies, c.body)
			top.faulty = top.faulty || procs[i].watch != nil
			for e := range edges {
				if edges[e].to == i && edges[e].from == timer {
					k := &clock{to: c, edge: e}
					k.Start(k, &c.Unit, e)
				}
			}
		}
	}
	for i := range procs {
		if procs[i].external {
			top.externals[i] = &external{top: top, index: i, x: p.External(i), entries: make([]piper.Lazy[entry], len(top.all))}
		}
	}
	return top, nil
}

func (top *topology) spec() piper.Spec {
	s := piper.Spec{Name: "test", Batch: 256, DrainTimeout: time.Minute}
	for i, p := range top.procs {
		s.Processors = append(s.Processors, piper.Processor{
			Name: top.name(i), Group: top.group[i], Blocking: p.blocking, External: p.external, Stays: p.stays,
			Ping: p.ping != nil, Serve: p.serve != nil, Finish: p.finish != nil, Events: p.events, Watch: p.watch,
		})
	}
	for i := range top.edges {
		e := &top.edges[i]
		if e.capacity == 0 {
			e.capacity = 1024
		}
		message := fmt.Sprint("M", i)
		if e.from == timer {
			message = "Tick"
		}
		s.Edges = append(s.Edges, piper.Edge{
			From: e.from, To: e.to, Message: message, Capacity: e.capacity, Full: e.full.policy(), Every: e.every,
		})
	}
	return s
}

func (top *topology) name(i int) string {
	if name := top.procs[i].name; name != "" {
		return name
	}
	return fmt.Sprint("p", i)
}

func (top *topology) graph() *graph.Graph[int, int] { return piper.GraphOf[int, int](top.pool) }

// outEdges returns the edges from a processor.
func (top *topology) outEdges(from int) (edges []int) {
	for i := range top.edges {
		if top.edges[i].from == from && !top.edges[i].letters {
			edges = append(edges, i)
		}
	}
	return edges
}

// violated records a violated guarantee.
func (top *topology) violated(format string, args ...any) {
	top.mu.Lock()
	defer top.mu.Unlock()
	if len(top.violations) < violationsMax {
		top.violations = append(top.violations, fmt.Sprintf(format, args...))
	}
}

func (top *topology) happened(kind string, c *cell) {
	top.mu.Lock()
	defer top.mu.Unlock()
	top.events = append(top.events, event{kind, c})
}

// groups numbers the strongly connected components of the processors, upstream first
// (Tarjan, 1972).
func groups(n int, edges []edge) []int {
	var (
		group = make([]int, n)
		index = make([]int, n) // order of discovery, from 1
		low   = make([]int, n)
		on    = make([]bool, n)
		stack []int
		found int
		count int
		visit func(v int)
	)
	visit = func(v int) {
		found++
		index[v], low[v] = found, found
		stack, on[v] = append(stack, v), true
		for _, e := range edges {
			if e.from != v {
				continue
			}
			if w := e.to; index[w] == 0 {
				visit(w)
				low[v] = min(low[v], low[w])
			} else if on[w] {
				low[v] = min(low[v], index[w])
			}
		}
		if low[v] != index[v] {
			return
		}
		for {
			w := stack[len(stack)-1]
			stack, on[w] = stack[:len(stack)-1], false
			group[w] = count
			if w == v {
				break
			}
		}
		count++
	}
	for v := range n {
		if index[v] == 0 {
			visit(v)
		}
	}
	for v := range group {
		group[v] = count - 1 - group[v]
	}
	return group
}
