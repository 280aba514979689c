package cluster

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/piper/border"
	"github.com/topogen/topogen/runtime/queue"
	"github.com/topogen/topogen/runtime/topo"
)

// message is what the instances of a program send each other.
type message struct {
	node               string // of the sending instance, if each node has it
	from, fromInstance int
	seq                uint64 // from this instance to the receiving instance, from 1
	hops               int    // how often it may still be passed on
	load               []byte
}

func encode(b []byte, m *message, _ int) ([]byte, error) {
	for _, v := range [...]uint64{uint64(m.from), uint64(m.fromInstance), m.seq, uint64(m.hops)} {
		b = binary.AppendUvarint(b, v)
	}
	b = append(binary.AppendUvarint(b, uint64(len(m.node))), m.node...)
	return append(b, m.load...), nil
}

func decode(b []byte) (m message, err error) {
	r := newReader(b)
	m.from, m.fromInstance, m.seq, m.hops = r.Number(indexMax), r.Number(indexMax), r.Uint(), r.Number(indexMax)
	m.node = string(r.Take(r.Uint()))
	m.load = r.B
	return m, r.Err
}

// program is a topology that is made at run time, on all its nodes. Its instances count
// what they send and check what they receive.
type program struct {
	processors []part
	edges      [][2]int // from and to; at most one for each pair
	groups     []int    // by processor
	capacity   int
	messages   int                             // that each instance of a source sends
	load       []byte                          // of each message
	burst      int                             // messages of a source before it pauses; 0: it never pauses
	gated      bool                            // the sources wait before they send more than allowed messages
	allowed    atomic.Int64                    // of each source
	init       func(ctx context.Context) error // nil: instances have no Init
	close      func(*top)                      // called by Close of each instance; nil: nothing is called
	sending    func(x *instance) []byte        // returns the content of each message in place of load; may be nil
	received   func(x *instance, m *message)   // checks each message, in place of the program; may be nil

	mu     sync.Mutex
	faults []string
	counts map[string]int // received, by sender and receiver
	runs   map[string]int // by instance: how many nodes have run it
}

// burstPause is how long a source pauses. The nodes are idle then, so virtual time passes.
const burstPause = 20 * time.Millisecond

type part struct {
	name      string
	instances int
	source    bool
	everyNode bool
}

// top is the topology of one node.
type top struct {
	program *program
	pool    *piper.Pool
	border  *border.Border // nil unless the nodes are those of the topology
	node    *Node
	cells   []reflect.Value // by processor: a pointer to an array of cell
}

type cell struct {
	unit piper.Unit
	out  sender
	p    *instance
}

type sender struct {
	out   piper.Out
	links map[[2]int]*piper.LinkOf[queue.Edge[message]]
}

// instance is the value of a processor's type.
type instance struct {
	top        *top
	processor  int
	index      int
	sent       map[[2]int]uint64
	seen       map[string]uint64 // by sending instance
	pings      int
	pauseUntil time.Time
}

func (p *program) fault(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.faults) < 10 {
		p.faults = append(p.faults, fmt.Sprintf(format, args...))
	}
}

// newTop makes the topology of a node.
func (p *program) newTop(open func(s piper.NodeSettings) (*Node, error), opts ...piper.Option) (*top, error) {
	t := &top{program: p}
	spec := piper.Spec{Name: "program", Topology: t, Workers: 2, Batch: 16}
	spec.Cluster = func(s piper.NodeSettings) (piper.Border, error) {
		var err error
		if t.node, err = open(s); t.node == nil {
			return nil, err
		}
		t.border = border.New(t.node)
		return t.border, err
	}
	for i, s := range p.processors {
		elements := s.instances
		if s.everyNode {
			elements++
		}
		cells := reflect.New(reflect.ArrayOf(elements, reflect.TypeFor[cell]()))
		t.cells = append(t.cells, cells)
		spec.Processors = append(spec.Processors, piper.Processor{
			Name: s.name, Group: p.groups[i], Ping: s.source, Others: s.everyNode, Instances: elements, Finish: true,
			Instance: func(in topo.Instance, value bool) (piper.Parts, error) {
				c := t.cell(i, in.Index)
				if value {
					p.mu.Lock()
					defer p.mu.Unlock()
					p.runs[fmt.Sprintf("%s/%d", in.Processor, in.Index)]++
					c.p = &instance{top: t, processor: i, index: in.Index, sent: map[[2]int]uint64{}, seen: map[string]uint64{}}
				}
				return c.parts(), nil
			},
			Guest: func() piper.Parts { return new(cell).parts() },
		})
	}
	for _, e := range p.edges {
		spec.Edges = append(spec.Edges, piper.Edge{From: e[0], To: e[1], Message: "message", Capacity: p.capacity})
	}
	var err error
	t.pool, err = piper.New(spec, opts...)
	return t, err
}

func (t *top) cell(processor, i int) *cell {
	return t.cells[processor].Elem().Index(i).Addr().Interface().(*cell)
}

func (c *cell) parts() piper.Parts {
	return piper.Parts{Cell: c, Unit: &c.unit, Out: &c.out.out}
}

func (c *cell) Link(processor, i int) {
	t := c.unit.Topology().(*top)
	if c.out.links == nil {
		c.out.links = map[[2]int]*piper.LinkOf[queue.Edge[message]]{}
	}
	if i < 0 {
		return
	}
	l, to := new(piper.LinkOf[queue.Edge[message]]), t.cell(processor, i)
	from := t.program.indexOf(t, c)
	border.JoinAcross(&c.out.out, &to.unit, l, t.program.edge(from, processor), t.program.capacity, func(budget int) (n int, err error) {
		for batch := queue.Peek(&l.Queue, budget); n < len(batch) && err == nil && !to.unit.MustYield(); n++ {
			err = to.p.receive(to, &batch[n])
		}
		l.Queue.Head.Release(n)
		return n, err
	}, func(o *border.Outlet, budget int) int { return border.ForwardEdge(o, &l.Queue, budget, encode) })
	c.out.links[[2]int{processor, i}] = l
}

// indexOf returns the processor of a cell, which may be a guest.
func (p *program) indexOf(t *top, c *cell) int {
	if c.p != nil {
		return c.p.processor
	}
	return c.unit.Processor()
}

func (p *program) edge(from, to int) int {
	for i, e := range p.edges {
		if e == [2]int{from, to} {
			return i
		}
	}
	panic("no such edge")
}

func (c *cell) put(processor, i int, m message) {
	l := c.out.links[[2]int{processor, i}]
	if l == nil {
		c.Link(processor, i)
		l = c.out.links[[2]int{processor, i}]
	}
	queue.Put(&l.Queue, m)
}

// Arrive puts a message of another node into its queue.
func (c *cell) Arrive(edge, to int, b []byte, _ border.ReplyTo) error {
	m, err := decode(b)
	if err != nil {
		return err
	}
	c.put(c.unit.Topology().(*top).program.edges[edge][1], to, m)
	return nil
}

func (c *cell) Ping(budget int) (n int, err error) {
	of := c.p.top.program
	for ; n < budget && !c.unit.MustYield(); n++ {
		if c.p.pings == of.messages {
			return n, topo.Done
		}
		if time.Now().Before(c.p.pauseUntil) || of.gated && c.p.pings == int(of.allowed.Load()) {
			return n, topo.Idle
		}
		c.p.pings++
		c.p.send(c, 3)
		if of.burst > 0 && c.p.pings%of.burst == 0 {
			c.p.pauseUntil = time.Now().Add(burstPause)
		}
	}
	return n, nil
}

func (c *cell) Init(ctx context.Context) error {
	if f := c.p.top.program.init; f != nil {
		return f(ctx)
	}
	return nil
}

func (c *cell) Finish() error { return nil }

func (c *cell) Closer() func() error {
	if c.p == nil || c.p.top.program.close == nil {
		return nil
	}
	return func() error { c.p.top.program.close(c.p.top); return nil }
}

// send sends a message along each edge, to an instance that depends on the number of
// messages.
func (x *instance) send(c *cell, hops int) {
	p := x.top.program
	load := p.load
	if p.sending != nil {
		load = p.sending(x)
	}
	for _, e := range p.edges {
		if e[0] != x.processor {
			continue
		}
		if p.processors[e[1]].everyNode {
			x.sent[[2]int{e[1], -1}]++
			for to := range border.Everywhere(&c.out.out, p.processors[e[1]].instances) {
				c.put(e[1], to, message{node: x.node(), from: x.processor, fromInstance: x.index, seq: x.sent[[2]int{e[1], -1}], hops: hops, load: load})
			}
			continue
		}
		to := int(x.total()+uint64(x.index)) % p.processors[e[1]].instances
		x.sent[[2]int{e[1], to}]++
		c.put(e[1], to, message{node: x.node(), from: x.processor, fromInstance: x.index, seq: x.sent[[2]int{e[1], to}], hops: hops, load: load})
	}
}

// node is the name of the node if all nodes have the instance.
func (x *instance) node() string {
	if x.top.program.processors[x.processor].everyNode {
		return x.top.node.settings.node
	}
	return ""
}

func (x *instance) total() (n uint64) {
	for _, s := range x.sent {
		n += s
	}
	return n
}

func (x *instance) receive(c *cell, m *message) error {
	p := x.top.program
	if p.received != nil {
		if p.received(x, m); m.hops > 0 {
			x.send(c, m.hops-1)
		}
		return nil
	}
	key := fmt.Sprintf("%s%d/%d", m.node, m.from, m.fromInstance)
	x.seen[key]++
	if m.seq != x.seen[key] {
		p.fault("%s/%d got message %d of %s/%d, want %d", p.processors[x.processor].name, x.index, m.seq, p.processors[m.from].name, m.fromInstance, x.seen[key])
		x.seen[key] = m.seq
	}
	p.mu.Lock()
	p.counts[fmt.Sprintf("%s>%d/%d", key, x.processor, x.index)]++
	p.mu.Unlock()
	if m.hops > 0 {
		x.send(c, m.hops-1)
	}
	return nil
}

// check compares what was sent with what was received, after the end of all nodes.
func (p *program) check(tops []*top) error {
	sent := map[string]int{}
	for _, t := range tops {
		for i, s := range p.processors {
			for j := range s.instances {
				x := t.cell(i, j).p
				if x == nil {
					continue
				}
				for to, n := range x.sent {
					if to[1] < 0 {
						for k := range p.processors[to[0]].instances {
							sent[fmt.Sprintf("%s%d/%d>%d/%d", x.node(), i, j, to[0], k)] += int(n) * len(tops)
						}
						continue
					}
					sent[fmt.Sprintf("%s%d/%d>%d/%d", x.node(), i, j, to[0], to[1])] += int(n)
				}
			}
		}
	}
	var errs []error
	for _, f := range p.faults {
		errs = append(errs, errors.New(f))
	}
	for pair, n := range sent {
		if p.counts[pair] != n {
			errs = append(errs, fmt.Errorf("%s: %d messages were sent, %d received", pair, n, p.counts[pair]))
		}
	}
	for name, n := range p.runs {
		want := 1
		for _, s := range p.processors {
			if s.everyNode && strings.HasPrefix(name, s.name+"/") {
				want = len(tops)
			}
		}
		if n != want {
			errs = append(errs, fmt.Errorf("%s runs on %d nodes", name, n))
		}
	}
	for k, t := range tops {
		for i, e := range t.pool.Snapshot().Edges {
			if e.Len != 0 || e.Sent != e.Received+e.Dropped || e.Waiting != 0 {
				errs = append(errs, fmt.Errorf("node %d, edge %v: %+v", k, p.edges[i], e))
			}
		}
	}
	return errors.Join(errs...)
}
