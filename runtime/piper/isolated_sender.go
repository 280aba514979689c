package piper

import (
	"sync/atomic"

	"github.com/topogen/topogen/runtime/queue"
)

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
	late atomic.Uint64 // sends since the last call had ended
}

// Init makes out the sender of the instance with that index; links makes its links.
func (o *Outside) Init(out *Out, index int, links Cell) {
	o.proc.pool = &o.pool
	o.unit.proc, o.unit.index = &o.proc, int32(index)
	o.unit.cell = cell{links}
	out.unit = &o.unit
	o.pool.lateOutside = &o.late
}

// Begin begins a call that may send. It reports whether something was sent since the
// call before had ended, which must not leave with the answer of this one: generated
// code gives it to DropLate.
func (o *Outside) Begin(out *Out) (late bool) {
	out.calling = true
	return o.late.Swap(0) > 0
}

// End ends a call.
func (o *Outside) End(out *Out) { out.calling = false }

// DropLate drops what was sent after the call that its sender was for.
func DropLate(edge, instance int, payload []byte) error { return nil }

// Serve has sent called after each message of out, until the function that it
// returns is called.
func (o *Outside) Serve(out *Out, sent func() error) (end func()) {
	o.pool.outside, out.served, out.calling = sent, true, true
	return func() { o.pool.outside, out.served, out.calling = nil, false, false }
}

// Outside prepares a link that leads out of the process. The queues are
// initialized.
func (l *Link) Outside(out *Out, heads ...*queue.Head) {
	l.out, l.heads = out, heads
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
