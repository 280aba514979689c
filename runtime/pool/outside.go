package pool

import "github.com/topogen/topogen/runtime/queue"

// OutsideCapacity is that of queues in the process of an isolated instance: they
// hold what one call sends.
const OutsideCapacity = 1 << 30

// Outside stands for the pool in the process of an isolated instance: its sender
// puts messages into links as everywhere, and generated code takes them out and
// passes them on.
type Outside struct {
	pool Pool
	proc processor
	unit Unit
}

// Init makes out the sender of the instance with that index.
func (o *Outside) Init(out *Out, index int) {
	o.proc.pool = &o.pool
	o.unit.proc, o.unit.index = &o.proc, int32(index)
	out.unit = &o.unit
}

// Serve has sent called after each message of out, until the function that it
// returns is called.
func (o *Outside) Serve(out *Out, sent func() error) (end func()) {
	o.pool.outside, out.served = sent, true
	return func() { o.pool.outside, out.served = nil, false }
}

// Outside prepares a link that leads out of the process. The queues are
// initialized.
func (l *Link) Outside(heads ...*queue.Head) {
	l.heads = heads
	l.ordered = len(heads) > 1
}

// Flush makes visible what was put into a link that leads out of the process.
func (l *Link) Flush() {
	for _, h := range l.heads {
		h.Publish(true)
	}
	if l.ordered {
		l.bound.Store(l.number.Own())
	}
}
