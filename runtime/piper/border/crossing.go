package border

import "github.com/topogen/topogen/runtime/piper"

// Forward is the part of an Inlet that passes at most budget messages on to another
// node. It returns how many it passed on.
type Forward func(o *Outlet, budget int) (n int)

// across is the Inlet of a link with one queue in a cluster.
type across struct {
	drain   piper.Drain
	forward Forward
}

func (a *across) Drain(budget int) (int, error) { return a.drain(budget) }

func (a *across) Forward(o *Outlet, budget int) int { return a.forward(o, budget) }

// JoinAcross is piper.Out.Join in a topology whose instances may run on other nodes. forward
// passes messages on if the instance of the unit to runs on another node.
func JoinAcross(o *piper.Out, to *piper.Unit, link any, edge, capacity int, drain piper.Drain, forward Forward) {
	o.JoinInlet(to, link, edge, capacity, &across{drain, forward})
}

// crossing is the Inlet of a link in a cluster. If the receiving instance runs on another
// node, it passes the messages on. If the sending instance does, it reports which
// messages were handled.
type crossing struct {
	border     *Border
	link       *piper.Link
	inner      piper.Inlet
	outlet     *Outlet   // nil before the first message to another node
	arrivals   *Arrivals // nil if the sending instance runs on this node
	unresolved uint64    // messages that were taken and wait for another attempt, or whose handler runs
	draining   bool      // Drain runs; EndDrain reports
}

// Wrap implements piper.Border.
func (b *Border) Wrap(l *piper.Link, inlet piper.Inlet) piper.Crossing {
	c := &crossing{border: b, link: l, inner: inlet}
	if u := l.SendingUnit(); u != nil {
		if g, ok := u.Cell().(*guest); ok {
			c.arrivals = g.arrivalsAt(l.Receiver())
		}
	}
	if c.arrivals != nil {
		c.keepAll()
	}
	return c
}

// Drain implements Inlet.
func (c *crossing) Drain(budget int) (n int, err error) {
	if c.link.Receiver().IsRemote() {
		return c.forward(budget), nil
	}
	c.draining = true
	n, err = c.inner.Drain(budget)
	c.EndDrain()
	return n, err
}

// EndDrain is called at the end of Drain. If a handler does not return, what handles this
// failure calls it instead: a deferred call would be made by an abandoned goroutine too, to
// which the link no longer belongs.
func (c *crossing) EndDrain() {
	c.draining = false
	c.report()
}

// Next returns the edge of the next message, if there is one.
func (c *crossing) Next() (edge int, ok bool) { return c.link.NextOf(c.inner) }

func (c *crossing) forward(budget int) (n int) {
	if c.outlet == nil {
		c.outlet = c.border.newOutlet(c.link)
	}
	f, ok := c.inner.(interface {
		Forward(o *Outlet, budget int) int
	})
	if !ok {
		return 0
	}
	if c.link.Receiver().Stepped() {
		budget = c.border.Batch() // no handler is called, so one step may pass on many messages
	}
	n = f.Forward(c.outlet, budget)
	c.outlet.flush()
	return n
}

// newOutlet makes the end of a link to another node.
func (b *Border) newOutlet(l *piper.Link) *Outlet {
	o := &Outlet{border: b, unit: l.Receiver(), link: l}
	o.From, o.FromInstance = l.Sender()
	o.To, o.ToInstance = o.unit.Processor(), o.unit.Index()
	if o.ToInstance == b.Instances(o.To) {
		o.ToInstance = OnAllOthers
	}
	return o
}

// report tells Nodes how many messages of another node were handled.
func (c *crossing) report() {
	a := c.arrivals
	if a == nil {
		return
	}
	n := uint64(0)
	for _, h := range c.link.Heads() {
		n += h.Taken()
	}
	if n -= c.unresolved; a.set(c.link.Receiver().Index(), n) {
		c.border.nodes.Handled(a, a.handled())
	}
}

// Arrives, Took and Resolved implement piper.Crossing.
func (c *crossing) Arrives() bool { return c.arrivals != nil }
func (c *crossing) Took()         { c.unresolved++ }

func (c *crossing) Resolved() {
	if c.unresolved--; !c.draining {
		c.report()
	}
}

// keepAll lets the queues drop nothing, because the sending node has already dropped
// the messages beyond their capacities. After retry.timeout, or after a restart of that node, a
// queue may have more: older messages may still wait here. Their number confirms them, so a
// dropped one would count while older ones wait. Arrivals.Limit bounds how many there are.
func (c *crossing) keepAll() {
	for _, h := range c.link.Heads() {
		h.KeepAll()
	}
}
