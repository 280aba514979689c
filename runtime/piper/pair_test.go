package piper_test

import (
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/queue"
)

// pair connects a sender with an instance. It has the shape of the generated code for a
// pair, with a lane for each edge between the two processors.
type pair[T any] struct {
	piper.Link
	to         *cell
	lanes      []lane[T]
	deliveries []delivery[T] // by lane, if the instance is watched
	handle     func(*cell, *T) error
}

// lane is the queue of one edge. Its messages are numbered if there are several lanes.
type lane[T any] interface {
	head() *queue.Head
	put(n uint64, m T)
	// first is the number of the first message.
	first() (n uint64, ok bool)
	// next passes the message with the given number to handle. It returns false if the
	// message was dropped in the meantime.
	next(n uint64, handle func(*T) error) (bool, error)
	// take removes the message with the given number. It returns false if the message
	// was dropped in the meantime.
	take(n uint64) (m T, ok bool)
}

func newPair[T any](top *topology, from int, to *cell, handle func(*cell, *T) error) *pair[T] {
	p := &pair[T]{to: to, handle: handle}
	edges := top.edgesBetween(from, to.index)
	for _, i := range edges {
		e := &top.edges[i]
		switch {
		case e.full == dropOldest:
			l := &latestLane[T]{}
			queue.Init(&l.Latest, i, e.capacity, &p.Link)
			p.lanes = append(p.lanes, l)
		case len(edges) > 1:
			l := &numberedLane[T]{full: e.full}
			queue.Init(&l.Edge, i, e.capacity, &p.Link)
			p.lanes = append(p.lanes, l)
		default:
			l := &plainLane[T]{full: e.full}
			queue.Init(&l.Edge, i, e.capacity, &p.Link)
			p.lanes = append(p.lanes, l)
		}
	}
	if to.proc.watch != nil {
		p.deliveries = make([]delivery[T], len(p.lanes))
	}
	return p
}

func (top *topology) edgesBetween(from, to int) (edges []int) {
	for i, e := range top.edges {
		if e.from == from && e.to == to {
			edges = append(edges, i)
		}
	}
	return edges
}

func (p *pair[T]) heads() (heads []*queue.Head) {
	for _, l := range p.lanes {
		heads = append(heads, l.head())
	}
	return heads
}

func (p *pair[T]) lane(edge int) lane[T] {
	for _, l := range p.lanes {
		if l.head().Index() == edge {
			return l
		}
	}
	panic("no such edge")
}

// number is the number of the next message, if messages are numbered.
func (p *pair[T]) number() uint64 {
	if len(p.lanes) == 1 {
		return 0
	}
	return p.Number()
}

// Drain passes at most budget messages to the handler.
func (p *pair[T]) Drain(budget int) (n int, err error) {
	if p.deliveries != nil {
		return p.drainWatched(budget)
	}
	if len(p.lanes) > 1 {
		return p.merge(budget)
	}
	if l, ok := p.lanes[0].(*plainLane[T]); ok {
		return p.drain(l, budget)
	}
	for n < budget && err == nil && !p.to.MustYield() {
		number, ok := p.lanes[0].first()
		if !ok {
			break
		}
		if ok, err = p.lanes[0].next(number, p.call); ok {
			n++
		}
	}
	return n, err
}

// drain is Drain for the only edge between two processors.
func (p *pair[T]) drain(l *plainLane[T], budget int) (n int, err error) {
	for n < budget && err == nil && !p.to.MustYield() {
		batch := queue.Peek(&l.Edge, budget-n)
		if len(batch) == 0 {
			break
		}
		k, kept := 0, 0
		for k < len(batch) && err == nil && !p.to.MustYield() {
			if l.full.exact() {
				l.Head.Release(1)
			} else {
				kept++
			}
			m := queue.Lend(&batch[k])
			err = p.call(m)
			queue.Reclaim(m)
			k++
		}
		l.Head.Release(kept)
		n += k
	}
	return n, err
}

// merge is Drain for several edges. It handles their messages in the order in which
// they were sent.
func (p *pair[T]) merge(budget int) (n int, err error) {
	for n < budget && err == nil && !p.to.MustYield() {
		order := p.order()
		p.Handling(order.Edge) // -1 if there is none, as in generated code
		edge, ok := order.Next()
		if !ok {
			break
		}
		if ok, err = p.lane(edge).next(order.N, p.call); ok {
			n++
		}
	}
	return n, err
}

func (p *pair[T]) order() piper.Order {
	order := p.Order()
	for _, l := range p.lanes {
		if n, ok := l.first(); ok {
			order.Add(l.head().Index(), n)
		}
	}
	return order
}

// Next is the edge of the next message.
func (p *pair[T]) Next() (edge int, ok bool) {
	if len(p.lanes) > 1 {
		return p.order().Next()
	}
	_, ok = p.lanes[0].first()
	return p.lanes[0].head().Index(), ok
}

func (p *pair[T]) call(m *T) error { return p.handle(p.to, m) }

// exact reports whether a message leaves its queue before its handler runs, so that the
// length of the queue is exact.
func (f full) exact() bool { return f == dropNewest || f == fail }

type plainLane[T any] struct {
	queue.Edge[T]
	full full
}

func (l *plainLane[T]) head() *queue.Head { return &l.Head }

func (l *plainLane[T]) put(_ uint64, m T) {
	if l.full == dropNewest {
		queue.Offer(&l.Edge, m)
	} else {
		queue.Put(&l.Edge, m)
	}
}

func (l *plainLane[T]) first() (uint64, bool) { return 0, !l.Head.Empty() }

func (l *plainLane[T]) next(uint64, func(*T) error) (bool, error) {
	panic("Drain takes a batch at a time")
}

func (l *plainLane[T]) take(uint64) (T, bool) {
	m := queue.Peek(&l.Edge, 1)[0]
	l.Head.Release(1)
	return m, true
}

type numberedLane[T any] struct {
	queue.Edge[queue.Numbered[T]]
	full full
}

func (l *numberedLane[T]) head() *queue.Head { return &l.Head }

func (l *numberedLane[T]) put(n uint64, m T) {
	if l.full == dropNewest {
		queue.Offer(&l.Edge, queue.Numbered[T]{N: n, M: m})
	} else {
		queue.Put(&l.Edge, queue.Numbered[T]{N: n, M: m})
	}
}

func (l *numberedLane[T]) first() (uint64, bool) {
	if l.Head.Empty() {
		return 0, false
	}
	return queue.Peek(&l.Edge, 1)[0].N, true
}

func (l *numberedLane[T]) next(_ uint64, handle func(*T) error) (bool, error) {
	m := queue.Lend(&queue.Peek(&l.Edge, 1)[0].M)
	if l.full.exact() {
		l.Head.Release(1)
	}
	err := handle(m)
	queue.Reclaim(m)
	if !l.full.exact() {
		l.Head.Release(1)
	}
	return true, err
}

func (l *numberedLane[T]) take(uint64) (T, bool) {
	m := queue.Peek(&l.Edge, 1)[0].M
	l.Head.Release(1)
	return m, true
}

type latestLane[T any] struct{ queue.Latest[T] }

func (l *latestLane[T]) head() *queue.Head       { return &l.Head }
func (l *latestLane[T]) put(n uint64, m T)       { l.Put(m, n) }
func (l *latestLane[T]) first() (uint64, bool)   { return l.First() }
func (l *latestLane[T]) take(n uint64) (T, bool) { return l.Take(n) }
func (l *latestLane[T]) next(n uint64, handle func(*T) error) (bool, error) {
	m, ok := l.Take(n)
	if !ok {
		return false, nil
	}
	return true, handle(&m)
}
