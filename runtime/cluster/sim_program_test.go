package cluster

import (
	"context"
	"encoding/binary"
	"fmt"
	"reflect"
	"time"

	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/piper/border"
	"github.com/topogen/topogen/runtime/topo"
)

// parcel is a message of a simulated topology, or a reply.
type parcel struct {
	node               int // that has sent it
	from, fromInstance int
	to                 int    // instance; allInstances for a message to all instances on all nodes
	seq                uint64 // in its stream, from 1
	call               int    // number of the Ask; 0 if there is none
	hops               int    // how often it may still be passed on
	last               int    // 1 if Finish has sent it
	load               []byte
}

const allInstances = 1 << 20

func encodeParcel(b []byte, m *parcel, _ int) ([]byte, error) {
	for _, v := range [...]int{m.node, m.from, m.fromInstance, m.to, int(m.seq), m.call, m.hops, m.last} {
		b = binary.AppendUvarint(b, uint64(v))
	}
	return append(b, m.load...), nil
}

func decodeParcel(b []byte, m *parcel) error {
	r := newReader(b)
	for _, v := range [...]*int{&m.node, &m.from, &m.fromInstance, &m.to} {
		*v = r.Number(indexMax)
	}
	m.seq = r.Uint()
	m.call, m.hops, m.last = r.Number(indexMax), r.Number(indexMax), r.Number(indexMax)
	m.load = r.B
	return r.Err
}

// simTop is the topology of one node.
type simTop struct {
	sim       *simulation
	node      *simNode
	pool      *piper.Pool
	border    *border.Border
	places    []reflect.Value // by processor: a pointer to an array of place
	externals []*simExternal  // by processor
}

// place is an instance as generated code makes one, or a guest.
type place struct {
	unit piper.Unit
	out  simSender
	p    *actor
	top  *simTop
	of   int // index of its processor
}

func (p *place) parts() piper.Parts {
	return piper.Parts{Cell: p, Unit: &p.unit, Out: &p.out.out}
}

type simSender struct {
	out      piper.Out
	channels map[[2]int]*channel // by processor and instance
}

// actor is the value of a processor's type.
type actor struct {
	pings    int
	finished bool
}

// simExternal is an external processor of one node.
type simExternal struct {
	x        *piper.External
	entries  map[[2]int]*entry
	left     int // messages that it still sends
	isClosed bool
}

type entry struct {
	piper.Gate
	*channel
}

// newTop makes the topology of a node.
func (s *simulation) newTop(n *simNode) (*simTop, error) {
	t := &simTop{sim: s, node: n}
	d := s.design
	spec := piper.Spec{Name: "sim", Topology: t, Workers: 1, Batch: d.batch, DrainTimeout: time.Hour}
	for i := range d.parts {
		p := &d.parts[i]
		proc := piper.Processor{Name: p.name, Group: d.groups[i], Ping: p.source, Finish: !p.external, External: p.external, Others: p.everyNode()}
		proc.Guest = func() piper.Parts { return new(place).parts() }
		if p.external {
			t.places = append(t.places, reflect.Value{})
		} else {
			elements := p.instances
			if p.everyNode() {
				elements++
			}
			list := reflect.New(reflect.ArrayOf(elements, reflect.TypeFor[place]()))
			t.places = append(t.places, list)
			proc.Instances = elements
			proc.Instance = func(in topo.Instance, value bool) (piper.Parts, error) {
				if value {
					s.ledger.made[[2]int{i, in.Index}]++
					t.place(i, in.Index).p = &actor{}
				}
				return t.place(i, in.Index).parts(), nil
			}
		}
		spec.Processors = append(spec.Processors, proc)
	}
	for i := range d.edges {
		e := &d.edges[i]
		spec.Edges = append(spec.Edges, piper.Edge{
			From: e.from, To: e.to, Message: fmt.Sprint("M", i), Capacity: e.capacity, Full: e.full.policy(), Reply: e.reply, AtMostOnce: e.once,
		})
	}
	for i := range d.parts {
		if every := d.parts[i].every; every > 0 {
			spec.Edges = append(spec.Edges, piper.Edge{From: -1, To: i, Message: "Tick", Capacity: 1, Every: every})
		}
	}
	var err error
	t.border = border.New(n)
	if t.pool, err = piper.New(spec, piper.UseBorder(func() piper.Border { return t.border }), piper.Logger(s.log)); err != nil {
		return nil, err
	}
	for i := range d.parts {
		t.externals = append(t.externals, nil)
		if d.parts[i].external {
			t.externals[i] = &simExternal{x: t.pool.External(i), entries: map[[2]int]*entry{}, left: d.messages}
		}
	}
	return t, nil
}

func (t *simTop) place(processor, i int) *place {
	return t.places[processor].Elem().Index(i).Addr().Interface().(*place)
}

// self returns the topology and the processor of an instance.
func (x *place) self() (*simTop, int) {
	if x.top == nil {
		x.top, x.of = x.unit.Topology().(*simTop), x.unit.Processor()
	}
	return x.top, x.of
}

// Link makes the channel to an instance.
func (x *place) Link(processor, i int) {
	if x.out.channels == nil {
		x.out.channels = map[[2]int]*channel{}
	}
	if i < 0 {
		return
	}
	t, from := x.self()
	to := t.place(processor, i)
	to.top, to.of = t, processor
	c := newChannel(t.sim.design, from, to, processor)
	c.Join(c, &x.out.out, &to.unit, c.heads()[0], c.heads()[1:]...)
	x.out.channels[[2]int{processor, i}] = c
}

func (x *place) channel(processor, i int) *channel {
	c := x.out.channels[[2]int{processor, i}]
	if c == nil {
		x.Link(processor, i)
		c = x.out.channels[[2]int{processor, i}]
	}
	return c
}

// Arrive puts a message of another node into its queue.
func (x *place) Arrive(edge, to int, b []byte, reply border.ReplyTo) error {
	t, _ := x.self()
	var m parcel
	if err := decodeParcel(b, &m); err != nil {
		return err
	}
	if is := t.sim.undecodable; is != nil && is(&m) {
		return errMalformed
	}
	e := &t.sim.design.edges[edge]
	r := piper.NoReply[parcel, parcel](m)
	if e.reply {
		r = border.RemoteRequest(&x.unit, m, encodeParcel, reply)
	}
	c := x.channel(e.to, to)
	l := c.lane(edge)
	if int(l.head().Depth()) >= e.capacity && e.full != block && !t.sim.loose() && !t.sim.ledger.restarted {
		t.sim.fault("%s: the queue of edge %d for %s/%d has no room for a message of another node", t.node.name, edge, t.sim.design.parts[e.to].name, to)
	}
	if int(l.head().Depth()) >= e.capacity && (e.full == dropOldest || e.full == dropNewest) {
		t.sim.counts["arrived beyond the capacity"]++
	}
	l.put(c.number(), r)
	t.sim.checkDepth(t.node, edge, l.head())
	return nil
}

// encoder returns the function that encodes the messages of an edge.
func (t *simTop) encoder(o *border.Outlet, edge int) border.Encode[request] {
	if t.sim.design.edges[edge].reply {
		return border.EncodeRequest(o, encodeParcel, decodeParcel)
	}
	return func(b []byte, r *request, limit int) ([]byte, error) { return encodeParcel(b, &r.Message, limit) }
}

func (x *place) Ping(budget int) (n int, err error) {
	t, of := x.self()
	d := t.sim.design
	for ; n < budget && !x.unit.MustYield(); n++ {
		if x.p.pings == d.messages || d.chain && x.unit.Index() > 0 {
			return n, topo.Done
		}
		if d.parts[of].idles && t.sim.random.IntN(8) == 0 {
			return n, topo.Idle
		}
		x.p.pings++
		x.send(t.sim.random.IntN(d.hops + 1))
	}
	return n, nil
}

// Finish sends a few messages and checks that it is called once.
func (x *place) Finish() error {
	t, of := x.self()
	if x.p.finished {
		t.sim.fault("%s: Finish of %s is called twice", t.node.name, x.name())
	}
	x.p.finished = true
	t.sim.finished(t.node, of)
	for range t.sim.random.IntN(3) {
		x.send(0)
	}
	return nil
}

func (x *place) name() string {
	t, of := x.self()
	return fmt.Sprintf("%s/%d", t.sim.design.parts[of].name, x.unit.Index())
}

// send sends a message along a random edge.
func (x *place) send(hops int) {
	t, of := x.self()
	d, r := t.sim.design, t.sim.random
	edge := d.pickEdge(r.IntN(1<<30), of)
	if edge < 0 {
		return
	}
	e := &d.edges[edge]
	to := &d.parts[e.to]
	if to.everyNode() && r.IntN(2) == 0 {
		n := border.Everywhere(&x.out.out, to.instances)
		for i := range n {
			if l := x.channel(e.to, i).lane(edge); e.full == fail && !l.head().Room() {
				return
			}
		}
		m := t.sim.newParcel(t.node, edge, x.unit.Index(), allInstances, 0) // it is handled often enough
		for i := range n {
			x.put(edge, i, m)
		}
		return
	}
	i := r.IntN(to.instances)
	if l := x.channel(e.to, i).lane(edge); e.full == fail && !l.head().Room() {
		return
	}
	x.put(edge, i, t.sim.newParcel(t.node, edge, x.unit.Index(), i, hops))
}

func (x *place) put(edge, i int, m parcel) {
	t, _ := x.self()
	if x.p != nil && x.p.finished {
		m.last = 1
	}
	c := x.channel(t.sim.design.edges[edge].to, i)
	l := c.lane(edge)
	t.sim.sent(t.node, edge, i, &m)
	l.put(c.number(), piper.NoReply[parcel, parcel](m))
	t.sim.checkDepth(t.node, edge, l.head())
}

// pickEdge picks one of the edges from a processor, or returns -1.
func (d *design) pickEdge(random, from int) int {
	n := 0
	for i := range d.edges {
		if d.edges[i].from == from {
			n++
		}
	}
	if n == 0 {
		return -1
	}
	k := random % n
	for i := range d.edges {
		if d.edges[i].from == from {
			if k == 0 {
				return i
			}
			k--
		}
	}
	return -1
}

// receive handles a message.
func (x *place) receive(edge int, r *request) error {
	t, of := x.self()
	s, m := t.sim, &r.Message
	s.received(t.node, x, edge, m)
	if slow := s.design.parts[of].slow; slow > 0 {
		t.node.busy(time.Duration(s.random.Int64N(int64(slow))))
	}
	if m.hops > 0 {
		n := 1
		if !s.design.chain {
			n = s.random.IntN(3)
		}
		for range n {
			x.send(m.hops - 1)
		}
	}
	if m.call != 0 {
		r.Reply(parcel{call: m.call, load: s.load(m.from)})
	}
	return nil
}

// act sends one message, or closes the external processor after its last one. It returns
// false if there is no room.
func (e *simExternal) act(t *simTop, of int) bool {
	s, d := t.sim, t.sim.design
	edge := d.pickEdge(s.random.IntN(1<<30), of)
	if e.left == 0 || edge < 0 {
		e.isClosed = true
		e.x.Close()
		return true
	}
	to := d.edges[edge].to
	i := s.random.IntN(d.parts[to].instances)
	c, err := e.entry(t, of, to, i)
	if err != nil {
		e.isClosed = true // the node stops
		return true
	}
	l := c.lane(edge)
	target := piper.Target{Gate: &c.Gate, Head: l.head(), Full: d.edges[edge].full.policy()}
	if !l.head().Room() && target.Full == piper.Wait {
		return false
	}
	if err := e.x.Lock(context.Background(), target); err != nil {
		e.isClosed = err != errFull
		return e.isClosed
	}
	e.left--
	m := s.newParcel(t.node, edge, 0, i, s.random.IntN(d.hops+1))
	s.sent(t.node, edge, i, &m)
	r := piper.NoReply[parcel, parcel](m)
	if d.edges[edge].reply && s.random.IntN(4) > 0 {
		r = s.ask(t, edge, m)
	}
	l.put(c.number(), r)
	s.checkDepth(t.node, edge, l.head())
	e.x.Commit(target)
	return true
}

func (e *simExternal) entry(t *simTop, from, to, i int) (*entry, error) {
	c := e.entries[[2]int{to, i}]
	if c != nil {
		return c, nil
	}
	at := t.place(to, i)
	at.top, at.of = t, to
	c = &entry{channel: newChannel(t.sim.design, from, at, to)}
	c.Join(c.channel, nil, &at.unit, c.heads()[0], c.heads()[1:]...)
	e.entries[[2]int{to, i}] = c
	return c, e.x.Open(&c.Gate, &c.Link)
}
