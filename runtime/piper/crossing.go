package piper

// Forward is the part of an Inlet that passes at most budget messages on to another
// node. It returns how many it passed on.
type Forward func(o *Outlet, budget int) (n int)

// across is the Inlet of a link with one queue in a cluster.
type across struct {
	drain   Drain
	forward Forward
}

func (a *across) Drain(budget int) (int, error) { return a.drain(budget) }

func (a *across) Forward(o *Outlet, budget int) int { return a.forward(o, budget) }

// crossing is the Inlet of a link in a cluster. If the receiving instance runs on another
// node, it passes the messages on. If the sending instance does, it reports which
// messages were handled.
type crossing struct {
	link       *Link
	inner      Inlet
	outlet     *Outlet   // nil before the first message to another node
	arrivals   *Arrivals // nil if the sending instance runs on this node
	at         int       // the receiving instance
	unresolved uint64    // messages that were taken and wait for another attempt, or whose handler runs
	draining   bool      // Drain runs; endDrain reports
}

func newCrossing(l *Link, inner Inlet, out *Out, to *Unit) *crossing {
	c := &crossing{link: l, inner: inner}
	if out != nil {
		if g, ok := out.unit.cell.of.(*guestCell); ok {
			c.arrivals = g.guest.arrivalsAt(to)
			c.at = to.Index()
		}
	}
	return c
}

// Drain implements Inlet.
func (c *crossing) Drain(budget int) (n int, err error) {
	if c.link.to.IsAway() {
		return c.forward(budget), nil
	}
	c.draining = true
	n, err = c.inner.Drain(budget)
	c.endDrain()
	return n, err
}

// endDrain is called at the end of Drain. If a handler does not return, what handles this
// failure calls it instead: a deferred call would be made by an abandoned goroutine too, to
// which the link no longer belongs.
func (c *crossing) endDrain() {
	if c != nil {
		c.draining = false
		c.report()
	}
}

// Next returns the edge of the next message, if there is one.
func (c *crossing) Next() (edge int, ok bool) { return nextOf(c.inner, c.link) }

func (c *crossing) forward(budget int) (n int) {
	if c.outlet == nil {
		c.outlet = newOutlet(c.link)
	}
	f, ok := c.inner.(interface {
		Forward(o *Outlet, budget int) int
	})
	if !ok {
		return 0
	}
	if w := c.link.to.worker.Load(); w.stepped {
		budget = w.pool.batch // no handler is called, so one step may pass on many messages
	}
	n = f.Forward(c.outlet, budget)
	c.outlet.flush()
	return n
}

// newOutlet makes the end of a link to another node.
func newOutlet(l *Link) *Outlet {
	o := &Outlet{unit: l.to, link: l}
	o.To, o.ToInstance = l.to.proc.index, l.to.Index()
	if o.ToInstance == l.to.proc.instances() {
		o.ToInstance = OnAllOthers
	}
	if l.out != nil {
		o.From, o.FromInstance = l.out.unit.proc.index, l.out.unit.Index()
	} else {
		o.From = l.gate.external.proc.index
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
	for _, h := range c.link.heads {
		n += h.Taken()
	}
	if n -= c.unresolved; a.set(c.at, n) {
		c.link.to.proc.pool.nodes.Handled(a, a.handled())
	}
}

// took counts a message that a Delivery has taken, and resolved one that it has cleared.
func (c *crossing) took() { c.unresolved++ }

func (c *crossing) resolved() {
	if c.unresolved--; !c.draining {
		c.report()
	}
}

// crossingOf returns the crossing of a link, or nil if the topology runs on one node.
func crossingOf(l *Link) *crossing {
	c, _ := l.inlet.(*crossing)
	return c
}

// keepAll lets the queues of l drop nothing, because the sending node has already dropped
// the messages beyond their capacities. After retry.timeout, or after a restart of that node, a
// queue may have more: older messages may still wait here. Their number confirms them, so a
// dropped one would count while older ones wait. Arrivals.Limit bounds how many there are.
func (l *Link) keepAll() {
	for _, h := range l.heads {
		h.KeepAll()
	}
}

// arrives reports whether the sending instance of l runs on another node.
func (l *Link) arrives() bool {
	c := crossingOf(l)
	return c != nil && c.arrivals != nil
}
