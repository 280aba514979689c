package piper_test

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/topo"
)

// cell is an instance under test. It calls the hooks of its processor and checks
// everything that an instance can observe of the pool's guarantees.
type cell struct {
	piper.Unit
	*sender
	*body
	top    *topology
	proc   *proc
	index  int // index of its processor
	number int // index among the instances of the processor

	ctx     context.Context // context of the current call
	stamps  stamps
	from    map[int]*trail // by sender: the last message that was handled
	missed  []uint64       // by edge: number of messages that were skipped
	got     []uint64       // by edge: number of handled messages
	ticks   uint64
	attempt int // number of the attempt at the current message, if the instance is watched
	past    past
}

// sender is the sender of an instance. The instance that replaces an abandoned one has
// a new sender.
type sender struct {
	out      *piper.Out
	position *piper.Position
	pairs    []piper.Links[*pair[message]] // by processor
	over     []flooded                     // block queues that were full after a send
}

// body is the value of the processor's type. Each restart makes a new one.
type body struct {
	calls int // number of earlier calls, without Init
	state any // for use by the hooks

	inside   atomic.Bool
	inited   bool
	finished bool
	closed   bool
	left     bool // its goroutine was abandoned
	within   call // the current call
}

// call is a kind of handler call.
type call int

const (
	callNone call = iota
	callInit
	callReceive  // with a message from outside the group
	callInternal // with a message from within the group
	callTick
	callPing
	callServe
	callFinish
	callEvent
	callWoken
)

// flooded is a block queue that reached its capacity in a send.
type flooded struct {
	lane   lane[message]
	within bool // the group
}

// called calls a hook, as generated code does.
func (c *cell) called(what call, hook func() error) error {
	c.begin(what)
	defer c.body.end()  // not c.body, which may be a new one when the call returns
	c.ctx = c.Context() // read before the call may be abandoned, as in generated code
	position := c.Enter()
	err := hook()
	position.Leave()
	return err
}

// begin checks the guarantees that hold when a call begins.
func (c *cell) begin(what call) {
	if !c.inside.CompareAndSwap(false, true) {
		c.violated("call %d while call %d runs", what, c.within)
	}
	c.within = what
	if c.closed || c.inited != (what != callInit) {
		c.violated("call %d: Init called %v, Close called %v", what, c.inited, c.closed)
	}
	if c.finished && what != callInternal && what != callEvent && what != callWoken {
		c.violated("call %d after Finish", what)
	}
	if what != callInit && what != callServe && what != callEvent {
		c.checkRoom(what)
	}
}

func (b *body) end() {
	b.calls++
	b.within = callNone
	b.inside.Store(false)
}

// checkRoom checks that no call that can be paused begins before the full queues are at
// most half full.
func (c *cell) checkRoom(what call) {
	kept := c.over[:0]
	for _, f := range c.over {
		h := f.lane.head()
		depth, capacity := int(h.Depth()), h.Capacity()
		if depth <= capacity/2 {
			continue
		}
		kept = append(kept, f)
		if !f.within || what == callPing || what == callReceive || what == callTick || what == callWoken {
			c.violated("call %d begins although the queue of edge %d holds %d of %d messages", what, h.Index(), depth, capacity)
		}
	}
	c.over = kept
}

func (c *cell) violated(format string, args ...any) {
	c.top.violated("processor %s, instance %d: "+format, append([]any{c.top.name(c.index), c.number}, args...)...)
}

// Init, Ping, Serve, Finish and Close make a cell an instance as generated code makes
// one.
func (c *cell) Init(ctx context.Context) error {
	b := c.body // the body must not be replaced if Init hangs
	c.begin(callInit)
	defer func() { b.end(); b.calls = 0 }()
	if c.proc.init != nil {
		if err := c.proc.init(c, ctx); err != nil {
			return err
		}
	}
	b.inited = true
	c.top.happened("Init", c)
	return nil
}

func (c *cell) Ping(budget int) (n int, err error) {
	for n < budget && !c.MustYield() {
		if err := c.pinged(); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

func (c *cell) pinged() error {
	return c.called(callPing, func() error { return c.proc.ping(c) })
}

func (c *cell) Serve(ctx context.Context) error {
	return c.called(callServe, func() error { return c.proc.serve(c, ctx) })
}

func (c *cell) Woken() error {
	if c.proc.woken == nil {
		c.violated("Woken was called without Wake")
		return nil
	}
	return c.called(callWoken, func() error { return c.proc.woken(c) })
}

func (c *cell) Alarm(time.Duration) error {
	return c.called(callEvent, func() error { return c.proc.alarm(c) })
}

func (c *cell) Finish() error {
	if c.finished {
		c.violated("Finish was called twice")
	}
	return c.called(callFinish, func() error {
		c.top.checkUpstream(c)
		c.top.happened("Finish", c)
		c.finished = true
		return c.proc.finish(c)
	})
}

func (c *cell) Closer() func() error {
	b := c.body
	if b.closed || !b.inited {
		c.violated("Close: Init called %v, Close called %v", b.inited, b.closed)
	}
	b.closed = true
	return func() error {
		if !b.inside.CompareAndSwap(false, true) {
			c.violated("Close was called while call %d runs", b.within)
		}
		defer b.inside.Store(false)
		c.top.happened("Close", c)
		if c.proc.close == nil {
			return nil
		}
		return c.proc.close(c)
	}
}

// received checks a message and passes it to the hook.
func (c *cell) received(m *message) error {
	what := callReceive
	if m.origin < len(c.top.all) && c.top.group[c.top.all[m.origin].index] == c.top.group[c.index] {
		what = callInternal
	}
	c.see(m)
	return c.called(what, func() error {
		if c.proc.receive == nil {
			return nil
		}
		return c.proc.receive(c, m)
	})
}

// see checks a message before an attempt to handle it.
func (c *cell) see(m *message) {
	if c.attempt <= 1 {
		c.accept(m)
		return
	}
	if r := c.from[m.origin]; m.sum != m.checksum() || r == nil || m.seq != r.seq {
		c.violated("attempt %d at %+v follows another message", c.attempt, *m)
	}
}

// accept checks that a message is complete, is for this cell, and comes after all
// messages that its sender sent to this cell before.
func (c *cell) accept(m *message) {
	if m.sum != m.checksum() {
		c.violated("the checksum of the message is wrong: %+v", *m)
		return
	}
	if m.to != c.stamps.id {
		c.violated("received a message for cell %d", m.to)
	}
	if m.keyed && mix(m.key)%uint64(len(c.top.cells[c.index])) != uint64(c.number) {
		c.violated("received key %#x, which belongs to another instance", m.key)
	}
	if c.from == nil {
		c.from = make(map[int]*trail)
		c.missed = make([]uint64, len(c.top.edges))
	}
	r := c.from[m.origin]
	if r == nil {
		r = &trail{lane: make([]uint64, len(c.top.edges))}
		c.from[m.origin] = r
	}
	if m.seq <= r.seq || m.lane <= r.lane[m.edge] {
		c.violated("message %d of sender %d follows message %d (along edge %d: %d follows %d)",
			m.seq, m.origin, r.seq, m.edge, m.lane, r.lane[m.edge])
		return
	}
	if m.lane > 1 && r.lane[m.edge] == 0 && c.top.edges[m.edge].full == dropNewest && m.origin < len(c.top.all) && !c.top.faulty {
		c.violated("edge %d drops the newest message, but lost message 1 of sender %d", m.edge, m.origin)
	}
	if c.past.closed[m.edge] {
		c.violated("received a message of edge %d, which is closed", m.edge)
	}
	c.missed[m.edge] += m.lane - r.lane[m.edge] - 1
	c.count(m.edge)
	r.seq, r.lane[m.edge] = m.seq, m.lane
}

// count counts a message or a tick that the cell received.
func (c *cell) count(edge int) {
	if c.got == nil {
		c.got = make([]uint64, len(c.top.edges))
	}
	c.got[edge]++
}

// mix is the finalizer of splitmix64, implemented independently of package route.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// clock is the link of a timer.
type clock struct {
	piper.Ticker
	to   *cell
	edge int
}

// Drain passes the queued tick to the handler.
func (k *clock) Drain(int) (n int, err error) {
	tick, ok := k.Take()
	if !ok {
		return 0, nil
	}
	c := k.to
	if c.HasFailed() {
		k.Discard()
		return 1, nil
	}
	if tick.N <= c.ticks && len(c.top.edges) == 1 {
		c.violated("tick %d follows tick %d", tick.N, c.ticks)
	}
	c.ticks++
	c.count(k.edge)
	return 1, c.called(callTick, func() error {
		if c.proc.tick == nil {
			return nil
		}
		return c.proc.tick(c, tick)
	})
}

// send sends m along an edge to an instance, as a method of a generated sender does.
func (c *cell) send(edge, instance int, m message) error {
	return c.sendAll(m, target{edge, instance})
}

// target is one queue that a message enters.
type target struct{ edge, instance int }

// sendAll sends m to several targets. If an edge fails, it sends m to none.
func (c *cell) sendAll(m message, targets ...target) error {
	return c.sendWith(c.sender, m, targets...)
}

// sendWith sends with the sender that the handler got.
func (c *cell) sendWith(s *sender, m message, targets ...target) error {
	if s.position.Leave() {
		defer s.position.Enter()
	}
	if err := c.out.Open(); err != nil {
		return err
	}
	if err := c.out.Open(); err != nil {
		return err
	}
	for _, t := range targets {
		if c.top.edges[t.edge].full == fail && !c.lane(t).head().Room() {
			return topo.ErrFull
		}
	}
	for _, t := range targets {
		c.put(t, m)
	}
	if c.within == callServe {
		return c.sentFromServe()
	}
	return c.out.Sent()
}

func (c *cell) put(t target, m message) {
	to := c.top.cells[c.top.edges[t.edge].to][t.instance]
	l := c.lane(t)
	p := c.pair(to)
	l.put(p.number(), c.stamps.stamp(m, t.edge, to))
	h := l.head()
	switch capacity := uint64(h.Capacity()); c.top.edges[t.edge].full {
	case block:
		if h.Depth() == capacity { // note the queue once, not for each message of a burst
			c.over = append(c.over, flooded{l, c.top.group[c.index] == c.top.group[to.index]})
		}
	case dropNewest, fail:
		if h.Depth() > capacity {
			c.violated("edge %d holds %d, its capacity is %d", t.edge, h.Depth(), capacity)
		}
	case dropOldest:
		if h.Len() > int(capacity) {
			c.violated("edge %d holds %d, its capacity is %d", t.edge, h.Len(), capacity)
		}
	}
}

// sentFromServe checks that a send of Serve returns when there is room or the topology
// stops.
func (c *cell) sentFromServe() error {
	err := c.out.Sent()
	if err == nil && c.out.Open() == nil {
		c.checkRoom(callServe)
	} else {
		c.over = nil // the next Serve starts without these queues
	}
	return err
}

// lane returns the queue to an instance. The first call makes it.
func (c *cell) lane(t target) lane[message] {
	to := c.top.cells[c.top.edges[t.edge].to][t.instance]
	return c.pair(to).lane(t.edge)
}

func (c *cell) pair(to *cell) *pair[message] {
	if c.pairs == nil {
		c.pairs = make([]piper.Links[*pair[message]], len(c.top.cells))
		for i := range c.pairs {
			c.pairs[i].Make(len(c.top.cells[i]))
		}
	}
	return c.pairs[to.index].Get(c.sender.out, to.index, to.number)
}

// Link makes the link to an instance.
func (c *cell) Link(processor, i int) {
	to := c.top.cells[processor][i]
	p := newPair(c.top, c.index, to, (*cell).received)
	p.Join(p, c.sender.out, &to.Unit, p.heads()[0], p.heads()[1:]...)
	c.pairs[processor].Set(i, p)
}
