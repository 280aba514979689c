package piper

import (
	"errors"
	"sync/atomic"
)

// IsolatedCapacity is the capacity of queues in the process of an isolated instance.
// They hold the messages that one call sends.
const IsolatedCapacity = 1 << 30

// IsolatedPool replaces the pool in the process of an isolated instance. A sender puts
// messages into links as it does in the pool. Generated code removes them and sends
// them to the parent process.
type IsolatedPool struct {
	pool Pool
	proc processor
	unit Unit
	late atomic.Uint64 // number of sends since the last call ended

	missed []int // edges of the messages for which the route selected no existing instance
}

// Init makes out the sender of the instance with the given index. links is a Cell that
// makes the links.
func (o *IsolatedPool) Init(out *Out, index int, links Cell) {
	o.proc.pool = &o.pool
	o.unit.proc, o.unit.index = &o.proc, int32(index)
	o.unit.cell = cell{links}
	out.unit = &o.unit
	o.pool.lateSends, o.pool.missed = &o.late, &o.missed
}

// Begin begins a call that may send. It reports whether messages were sent since the
// previous call ended. They must not be sent with the result of this call, so generated
// code passes them to DropLate.
func (o *IsolatedPool) Begin(out *Out) (late bool) {
	out.calling = true
	return o.late.Swap(0) > 0
}

// End ends a call.
func (o *IsolatedPool) End(out *Out) { out.calling = false }

// DropLate drops a message that was sent after the call of its sender had ended.
func DropLate(edge, instance int, payload []byte) error { return nil }

// Missed is the index of the instance in a message whose route selected no existing instance. The
// parent counts such a message as dropped.
const Missed = -1

// FlushMissed calls put for each message whose route selected no existing instance.
func (o *IsolatedPool) FlushMissed(put func(edge, instance int, payload []byte) error) (err error) {
	for _, edge := range o.missed {
		err = errors.Join(err, put(edge, Missed, nil))
	}
	o.missed = o.missed[:0]
	return err
}

// Serve makes out call sent after each message, until the returned function is called.
func (o *IsolatedPool) Serve(out *Out, sent func() error) (end func()) {
	o.pool.forward, out.inServe, out.calling = sent, true, true
	return func() { o.pool.forward, out.inServe, out.calling = nil, false, false }
}
