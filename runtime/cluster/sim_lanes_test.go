package cluster

import (
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/piper/border"
	"github.com/topogen/topogen/runtime/queue"
	"github.com/topogen/topogen/runtime/topo"
)

// full says what a send does if the queue is full.
type full int

const (
	block full = iota
	dropOldest
	dropNewest
	fail
)

func (f full) String() string {
	return [...]string{"block", "drop-oldest", "drop-newest", "fail"}[f]
}

func (f full) policy() piper.Policy {
	return [...]piper.Policy{block: piper.Wait, dropOldest: piper.Drop, dropNewest: piper.Drop, fail: piper.Fail}[f]
}

// request is what the queues of a simulated topology hold.
type request = piper.Request[parcel, parcel]

// channel connects a sending with a receiving instance. It has the shape of generated
// code: a queue for each edge between their processors.
type channel struct {
	piper.Link
	to    *place
	lanes []lane
}

// lane is the queue of one edge. Its messages are numbered if there are several lanes.
type lane interface {
	head() *queue.Head
	put(n uint64, r request)
	first() (n uint64, ok bool)
	// next passes the message with a number to the handler. It returns false if the
	// message was dropped in the meantime.
	next(n uint64, to *place) (bool, error)
	forward(o *border.Outlet, n int, order piper.Order, encode border.Encode[request]) int
}

func newChannel(d *design, from int, to *place, processor int) *channel {
	c := &channel{to: to}
	edges := d.between(from, processor)
	for _, i := range edges {
		e := &d.edges[i]
		switch {
		case e.full == dropOldest:
			l := &latestLane{}
			queue.Init(&l.Latest, i, e.capacity, &c.Link)
			c.lanes = append(c.lanes, l)
		case len(edges) > 1:
			l := &numberedLane{full: e.full}
			queue.Init(&l.Edge, i, e.capacity, &c.Link)
			c.lanes = append(c.lanes, l)
		default:
			l := &plainLane{full: e.full}
			queue.Init(&l.Edge, i, e.capacity, &c.Link)
			c.lanes = append(c.lanes, l)
		}
	}
	return c
}

func (c *channel) heads() (heads []*queue.Head) {
	for _, l := range c.lanes {
		heads = append(heads, l.head())
	}
	return heads
}

func (c *channel) lane(edge int) lane {
	for _, l := range c.lanes {
		if l.head().Index() == edge {
			return l
		}
	}
	panic("no such edge")
}

// number is the number of the next message, if messages are numbered.
func (c *channel) number() uint64 {
	if len(c.lanes) == 1 {
		return 0
	}
	return c.Number()
}

func (c *channel) order() piper.Order {
	if len(c.lanes) == 1 {
		n, ok := c.lanes[0].first()
		if !ok {
			return piper.Order{Edge: -1}
		}
		return piper.Order{Edge: c.lanes[0].head().Index(), N: n, Until: ^uint64(0)}
	}
	order := c.Order()
	for _, l := range c.lanes {
		if n, ok := l.first(); ok {
			order.Add(l.head().Index(), n)
		}
	}
	return order
}

// Drain passes messages to the handler.
func (c *channel) Drain(budget int) (n int, err error) {
	for n < budget && err == nil && !c.to.unit.MustYield() {
		order := c.order()
		edge, ok := order.Next()
		if !ok {
			break
		}
		c.Handling(edge)
		if ok, err = c.lane(edge).next(order.N, c.to); ok {
			n++
		}
	}
	return n, err
}

// Next is the edge of the next message.
func (c *channel) Next() (edge int, ok bool) { return c.order().Next() }

// Forward passes on messages to another node, in the order in which they were sent.
func (c *channel) Forward(o *border.Outlet, budget int) (n int) {
	for n < budget {
		order := c.order()
		edge, ok := order.Next()
		if !ok {
			break
		}
		k := c.lane(edge).forward(o, budget-n, order, c.to.top.encoder(o, edge))
		if k == 0 {
			break
		}
		n += k
	}
	return n
}

// offer puts a request into a queue whose policy is drop-newest, or drops it.
func offer(h *queue.Head, r request) bool {
	if h.Room() {
		return true
	}
	h.Refuse()
	r.Evicted()
	return false
}

type plainLane struct {
	queue.Edge[request]
	full full
}

func (l *plainLane) head() *queue.Head { return &l.Head }

func (l *plainLane) put(_ uint64, r request) {
	if l.full != dropNewest || offer(&l.Head, r) {
		queue.Put(&l.Edge, r)
	}
}

func (l *plainLane) first() (uint64, bool) { return 0, len(queue.Peek(&l.Edge, 1)) > 0 }

func (l *plainLane) next(_ uint64, to *place) (bool, error) {
	r := &queue.Peek(&l.Edge, 1)[0]
	return true, handleOne(&l.Head, l.full, r, to)
}

// handleOne calls the handler. If the length of the queue must be exact, the message
// leaves the queue before.
func handleOne(h *queue.Head, f full, r *request, to *place) error {
	exact := f == dropNewest || f == fail
	taken := *r
	if exact {
		h.Release(1)
	}
	err := to.receive(h.Index(), &taken)
	if !exact {
		h.Release(1)
	}
	return err
}

func (l *plainLane) forward(o *border.Outlet, n int, _ piper.Order, encode border.Encode[request]) int {
	return border.ForwardEdge(o, &l.Edge, n, encode)
}

type numberedLane struct {
	queue.Edge[queue.Numbered[request]]
	full full
}

func (l *numberedLane) head() *queue.Head { return &l.Head }

func (l *numberedLane) put(n uint64, r request) {
	if l.full != dropNewest || offer(&l.Head, r) {
		queue.Put(&l.Edge, queue.Numbered[request]{N: n, M: r})
	}
}

func (l *numberedLane) first() (uint64, bool) {
	batch := queue.Peek(&l.Edge, 1)
	if len(batch) == 0 {
		return 0, false
	}
	return batch[0].N, true
}

func (l *numberedLane) next(_ uint64, to *place) (bool, error) {
	return true, handleOne(&l.Head, l.full, &queue.Peek(&l.Edge, 1)[0].M, to)
}

func (l *numberedLane) forward(o *border.Outlet, n int, order piper.Order, encode border.Encode[request]) int {
	return border.ForwardNumbered(o, &l.Edge, n, order.Until, encode)
}

type latestLane struct{ queue.Latest[request] }

func (l *latestLane) head() *queue.Head       { return &l.Head }
func (l *latestLane) put(n uint64, r request) { l.Put(r, n) }
func (l *latestLane) first() (uint64, bool)   { return l.First() }

func (l *latestLane) next(n uint64, to *place) (bool, error) {
	r, ok := l.Take(n)
	if !ok {
		return false, nil
	}
	return true, to.receive(l.Head.Index(), &r)
}

func (l *latestLane) forward(o *border.Outlet, n int, order piper.Order, encode border.Encode[request]) int {
	return border.ForwardLatest(o, &l.Latest, order.N, encode)
}

// errFull is the error of a send to a full queue.
var errFull = topo.ErrFull
