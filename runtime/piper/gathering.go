package piper

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/topogen/topogen/runtime/topo"
)

// Gathering is a call that several instances answer. It has a part for each link along
// which the request goes.
type Gathering[R any] struct {
	done chan struct{} // closed when no part is open

	mu     sync.Mutex
	parts  []part[R]
	open   int  // parts that have not ended
	over   bool // Wait has returned
	gaveUp bool // Wait has returned while parts were open
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

// Part wraps a message with its part of a call, for the queue of link i. Without a call,
// no reply is needed.
func Part[M, R any](g *Gathering[R], i int, m M) Request[M, R] {
	if g == nil {
		return Request[M, R]{Message: m}
	}
	return Request[M, R]{m, &pendingReply[R]{gathering: g, part: i}}
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
	g.over, g.gaveUp = true, !complete
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

// Waits reports whether Wait has not returned.
func (g *Gathering[R]) Waits() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.over
}

// GaveUp reports whether Wait has returned before all parts had ended.
func (g *Gathering[R]) GaveUp() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.gaveUp
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

// Expect sets to how many instances the request of a part goes. The part ends when all have
// answered.
func (g *Gathering[R]) Expect(i, instances int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if p := &g.parts[i]; !p.ended && !g.over {
		p.of, p.reached = instances, true
		g.endWhole(p)
	}
}

// Assume sets to how many instances the request of a part goes until Expect is called. It
// must be called before the request is sent.
func (g *Gathering[R]) Assume(i, instances int) { g.parts[i].of = instances }

// endWhole ends a part if all instances have answered. The caller holds the lock.
func (g *Gathering[R]) endWhole(p *part[R]) {
	if p.reached && len(p.replies) == p.of {
		g.end(p)
	}
}

// Add adds the reply of an instance of another node to a part. A second reply is ignored.
func (g *Gathering[R]) Add(i int, node string, instance int, reply R) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := &g.parts[i]
	if p.ended || g.over || slices.ContainsFunc(p.replies, func(r gathered[R]) bool { return r.node == node && r.instance == instance }) {
		return
	}
	p.replies = append(p.replies, gathered[R]{node, instance, reply})
	g.endWhole(p)
}

// Miss records why an instance of another node has no reply. The first reason of a part
// counts.
func (g *Gathering[R]) Miss(i int, why error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if p := &g.parts[i]; !p.ended && !g.over && p.err == nil {
		p.err = why
	}
}

// EndPart ends a part because no more replies come. why is the reason if replies are missing
// and no other reason is recorded.
func (g *Gathering[R]) EndPart(i int, why error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := &g.parts[i]
	if p.ended || g.over {
		return
	}
	if p.err == nil && len(p.replies) < p.of {
		p.err = why
	}
	g.end(p)
}
