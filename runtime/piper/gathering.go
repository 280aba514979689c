package piper

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"sync"

	"github.com/topogen/topogen/runtime/topo"
)

// Gathering is a call that several instances answer. It has a part for each link along
// which the request goes.
type Gathering[R any] struct {
	done chan struct{} // closed when no part is open

	mu    sync.Mutex
	parts []part[R]
	open  int  // parts that have not ended
	over  bool // Wait has returned
}

// part are the replies that come along one link.
type part[R any] struct {
	replies []gathered[R]
	of      int  // number of instances to which the request was sent
	reached bool // the request was sent to other nodes
	ended   bool
	err     error // why the first instance without a reply has none
}

// gathered is the reply of one instance.
type gathered[R any] struct {
	node     string // "" if the link leads to one instance
	instance int
	reply    R
}

// Gather begins a call along links to a number of instances.
func Gather[R any](instances int) *Gathering[R] {
	g := &Gathering[R]{done: make(chan struct{}), parts: make([]part[R], instances), open: instances}
	for i := range g.parts {
		g.parts[i].of = 1
	}
	return g
}

// GatherEverywhere begins a call along links to the instances of this node. In a cluster
// there is one link more: to those of all other nodes.
func GatherEverywhere[R any](x *External, instances int) *Gathering[R] {
	g := Gather[R](x.Everywhere(instances))
	if nodes := x.pool.nodes; nodes != nil {
		g.parts[instances].of = nodes.Others() * instances // until it is known how many get the request
	}
	return g
}

// Part wraps a message with its part of a call, for the queue of link i. Without a call,
// no reply is needed.
func Part[M, R any](g *Gathering[R], i int, m M) Request[M, R] {
	if g == nil {
		return Request[M, R]{Message: m}
	}
	return Request[M, R]{m, &call[R]{gathering: g, part: i}}
}

// complete ends the part of a link to one instance.
func (g *Gathering[R]) complete(i int, o outcome[R]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := &g.parts[i]
	if p.ended || g.over {
		return
	}
	if p.err = o.err; p.err == nil {
		p.replies = []gathered[R]{{reply: o.answer}}
	}
	g.end(p)
}

// end ends a part. The caller holds the lock.
func (g *Gathering[R]) end(p *part[R]) {
	if p.ended = true; g.open > 0 {
		if g.open--; g.open == 0 {
			close(g.done)
		}
	}
}

// Wait waits for all replies until ctx ends, or the topology has ended. It joins them with
// aggregate: those of this node first, then those of the other nodes by name, and on each
// node by instance. If some instances have not answered, it returns the joined replies of
// the others with a *topo.PartialError.
func (g *Gathering[R]) Wait(ctx context.Context, x *External, aggregate func(a, b R) R) (reply R, err error) {
	err = g.wait(ctx, x)
	g.mu.Lock()
	complete := g.open == 0
	g.over = true
	g.mu.Unlock() // from here on, no other goroutine changes the parts
	answered, of := 0, 0
	for i := range g.parts {
		p := &g.parts[i]
		of += p.of
		slices.SortFunc(p.replies, func(a, b gathered[R]) int {
			return cmp.Or(cmp.Compare(a.node, b.node), cmp.Compare(a.instance, b.instance))
		})
		for _, r := range p.replies {
			if answered++; answered == 1 {
				reply = r.reply
			} else {
				reply = aggregate(reply, r.reply)
			}
		}
		if complete && err == nil && len(p.replies) < p.of {
			err = p.err
		}
	}
	if complete && err == nil {
		return reply, nil
	}
	return reply, &topo.PartialError{Answered: answered, Of: of, Err: err}
}

// wait returns an error if it has stopped waiting.
func (g *Gathering[R]) wait(ctx context.Context, x *External) error {
	if s := x.pool.stepper; s != nil {
		s.stepUntil(g.isDone)
		if !g.isDone() {
			return topo.ErrStopping
		}
	}
	select {
	case <-g.done:
		return nil
	default:
	}
	select {
	case <-g.done:
	case <-ctx.Done():
		if !g.isDone() { // replies that arrived at the same time win
			return ctx.Err()
		}
	case <-x.ended:
		if !g.isDone() {
			return topo.ErrStopping
		}
	}
	return nil
}

func (g *Gathering[R]) isDone() bool {
	select {
	case <-g.done:
		return true
	default:
		return false
	}
}

// castCall is the part of a Gathering whose request goes to the instances of all other
// nodes.
type castCall[R any] struct {
	gathering *Gathering[R]
	part      int
	instances int // on each node
	decode    func(b []byte, reply *R) error
}

func (c *castCall[R]) several() bool { return true }

// lock returns the part if it may still change. The caller unlocks the Gathering.
func (c *castCall[R]) lock() (p *part[R], open bool) {
	c.gathering.mu.Lock()
	p = &c.gathering.parts[c.part]
	return p, !p.ended && !c.gathering.over
}

func (c *castCall[R]) reaches(nodes int) {
	p, open := c.lock()
	defer c.gathering.mu.Unlock()
	if open {
		p.of, p.reached = nodes*c.instances, true
		c.endWhole(p)
	}
}

// endWhole ends the part if all instances have answered.
func (c *castCall[R]) endWhole(p *part[R]) {
	if p.reached && len(p.replies) == p.of {
		c.gathering.end(p)
	}
}

func (c *castCall[R]) reply(node string, b []byte, err error) {
	r := gathered[R]{node: node}
	if err == nil {
		instance, n := binary.Uvarint(b)
		if n <= 0 || instance >= uint64(c.instances) {
			err = undecodable(errTruncated)
		} else {
			r.instance = int(instance)
			if err = c.decode(b[n:], &r.reply); err != nil {
				err = undecodable(err)
			}
		}
	}
	p, open := c.lock()
	defer c.gathering.mu.Unlock()
	switch {
	case !open:
	case err != nil:
		if p.err == nil {
			p.err = callError(err)
		}
	case slices.ContainsFunc(p.replies, func(other gathered[R]) bool { return other.node == node && other.instance == r.instance }):
	default:
		p.replies = append(p.replies, r)
		c.endWhole(p)
	}
}

func (c *castCall[R]) end(dropped error) {
	p, open := c.lock()
	defer c.gathering.mu.Unlock()
	if !open {
		return
	}
	if p.err == nil && dropped != nil {
		p.err = callError(dropped)
	}
	if p.err == nil && len(p.replies) < p.of {
		p.err = callError(errNoReply)
	}
	c.gathering.end(p)
}
