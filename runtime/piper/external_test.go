package piper_test

import (
	"context"
	"time"

	"github.com/topogen/topogen/runtime/piper"
)

type request = piper.Request[message, message]

// external is an external processor under test.
type external struct {
	top     *topology
	index   int
	x       *piper.External
	calls   piper.Calls[message, message]
	entries []piper.Lazy[entry] // by id of the receiving cell
}

// entry connects an external processor with an instance.
type entry struct {
	*pair[request]
	piper.Gate
}

// caller is a goroutine outside the pool that sends through an external processor.
type caller struct {
	stamps
	external *external
}

// caller makes a new sender.
func (d *external) caller() *caller {
	d.top.mu.Lock()
	defer d.top.mu.Unlock()
	g := &caller{external: d}
	g.id = len(d.top.all) + len(d.top.callers)
	d.top.callers = append(d.top.callers, g)
	return g
}

// Close closes the external processor.
func (d *external) Close() { d.x.Close() }

// send sends m to one instance.
func (g *caller) send(ctx context.Context, edge, instance int, m message) error {
	return g.sendAll(ctx, m, target{edge, instance})
}

// sendAll sends m to all targets or to none. The targets must be in ascending order.
func (g *caller) sendAll(ctx context.Context, m message, targets ...target) error {
	return g.pass(ctx, targets, func(t target, to *cell) request {
		return piper.NoReply[message, message](g.stamp(m, t.edge, to))
	})
}

// ask sends m to one instance and waits for its reply.
func (g *caller) ask(ctx context.Context, timeout time.Duration, edge, instance int, m message) (answer message, err error) {
	var r request
	if timeout > 0 { // generated code passes the timeout in the context
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	err = g.pass(ctx, []target{{edge, instance}}, func(t target, to *cell) request {
		m = g.stamp(m, t.edge, to)
		r = g.external.calls.Request(m)
		return r
	})
	if err != nil {
		return answer, err
	}
	answer, err = g.external.calls.Wait(ctx, g.external.x, r, 0)
	if err == nil && answer != answerTo(m) {
		g.external.top.violated("caller %d sent %+v and got the reply %+v", g.id, m, answer)
	}
	return answer, err
}

// answerTo is the reply of each handler.
func answerTo(m message) message {
	return message{origin: m.origin, to: m.to, seq: m.seq, lane: m.lane, key: ^m.key}
}

// pass puts a message into the queues of all targets.
func (g *caller) pass(ctx context.Context, targets []target, wrap func(target, *cell) request) error {
	d := g.external
	entries := make([]*entry, len(targets))
	locks := make([]piper.Target, len(targets))
	for i, t := range targets {
		en, err := d.entry(d.top.cells[d.top.edges[t.edge].to][t.instance])
		if err != nil {
			return err
		}
		entries[i] = en
		locks[i] = piper.Target{Gate: &en.Gate, Head: en.lane(t.edge).head(), Full: d.top.edges[t.edge].full.policy()}
	}
	if err := d.x.Lock(ctx, locks...); err != nil {
		return err
	}
	var r request
	for i, t := range targets {
		l := entries[i].lane(t.edge)
		r = wrap(t, entries[i].to)
		l.put(entries[i].number(), r)
		if h := l.head(); d.top.edges[t.edge].full != dropOldest && h.Depth() > uint64(h.Capacity()) {
			d.top.violated("caller %d: the queue of edge %d holds %d, its capacity is %d", g.id, t.edge, h.Depth(), h.Capacity())
		}
	}
	if len(targets) == 1 {
		r.Commit(ctx, d.x, locks[0])
	} else {
		d.x.Commit(locks...)
	}
	return nil
}

// entry returns the link to an instance. The first call makes it.
func (d *external) entry(to *cell) (*entry, error) {
	return d.entries[to.stamps.id].Get(func() (*entry, error) {
		en := &entry{pair: newPair(d.top, d.index, to, (*cell).requested)}
		en.Join(en.pair, nil, &to.Unit, en.heads()[0], en.heads()[1:]...)
		return en, d.x.Open(&en.Gate, &en.Link)
	})
}

// requested passes a message from outside to the hook, and sends the reply.
func (c *cell) requested(r *request) error {
	m := r.Message
	if err := c.received(&m); err != nil {
		return err
	}
	r.Reply(answerTo(m))
	return nil
}
