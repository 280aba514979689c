package piper

import (
	"github.com/topogen/topogen/runtime/internal/bug"
	"github.com/topogen/topogen/runtime/internal/count"
	"github.com/topogen/topogen/runtime/queue"
	"github.com/topogen/topogen/runtime/topo"
)

// Out is the runtime's part of an instance's sender. It belongs to the
// goroutine that is in the instance.
type Out struct {
	_       [0]func() // not compared, see Unit
	unit    *Unit
	dirty   count.Pointer[Link] // links with unpublished messages; expose reads it
	filled  queue.HeadList      // queues that became full since the last settle
	full    int32               // full queues that lead out of the group
	calling bool                // a call of the instance runs, which may send
	served  bool                // Serve runs: each send publishes and waits
	pauses  bool                // some queue is full, and paused says so
	paused  count.Count         // nanoseconds in which some queue was full; while one is, less the time of now
}

// First begins to send m where the sender has no link to the processor with index to: it
// has the link made, or the table of links if that processor has several instances. It
// returns false in the test of a handler, where it keeps m in the recorder's fields and
// all is done.
func (o *Out) First(to int, m any, fields string) bool {
	if o.unit != nil {
		if keep, ok := o.unit.cell.of.(keeper); ok {
			keep(m, fields)
			return false
		}
	}
	o.Link(to, -1)
	return true
}

// Link has the link to an instance made.
func (o *Out) Link(to, instance int) {
	if o.unit == nil {
		panic("topogen: this sender comes neither from a topology nor from a recorder; in the test of a handler use the Sender of a recorder")
	}
	o.unit.cell.Link(to, instance)
}

// Index is the index of the instance that sends.
func (o *Out) Index() int {
	if o == nil || o.unit == nil {
		return 0
	}
	return int(o.unit.index)
}

// publish makes everything visible that was sent since the last time. It
// returns a link within the group that carried some of it, if any.
func (o *Out) publish(w *Worker) (within *Link) {
	dirty := o.dirty.Own()
	o.dirty.StoreRelease(nil)
	for l := dirty; l != nil; l = l.nextDirty {
		l.dirty = false
		l.publish(w)
		if l.inCycle {
			within = l
		}
	}
	return within
}

// expose makes visible what the instance has sent, while the goroutine that it runs
// on is in a handler and may go on sending. Until that is over it does not publish:
// the caller has taken its worker, and it waits to hear where it runs now.
func (o *Out) expose() {
	for l := o.dirty.Load(); l != nil && !bug.On(bug.OutputWaits); l = l.nextDirty {
		l.expose()
	}
}

// settle asks the receivers of full queues to report room.
func (o *Out) settle() {
	for h := o.filled.Pop(); h != nil; h = o.filled.Pop() {
		if !h.Await() {
			o.drained(h)
		}
	}
	if o.full > 0 && !o.pauses {
		o.pauses = true
		o.paused.StoreRelease(o.paused.Load() - uint64(o.unit.proc.pool.clock()))
	}
}

// drained ends the full state of one queue.
func (o *Out) drained(h *queue.Head) {
	h.Drained()
	if o.unit.proc.pool.edges[h.Index()].inCycle {
		o.unit.proc.group.drained()
		return
	}
	o.lessFull()
}

// lessFull is told that one thing less keeps the instance from having turns.
func (o *Out) lessFull() {
	if o.full--; o.full == 0 && o.pauses {
		o.pauses = false
		o.paused.StoreRelease(o.paused.Load() + uint64(o.unit.proc.pool.clock()))
	}
}

// Open begins every send of a processor without inputs. Within Serve it refuses
// the message, which is not accepted then, once the topology stops.
func (o *Out) Open() error {
	if !o.served {
		return nil
	}
	if o.unit.isToStop() {
		return topo.ErrStopping
	}
	return o.unit.proc.pool.serveState()
}

// Sent ends every send of a processor without inputs. Within Serve it publishes
// at once and waits while a queue is full; the message was accepted, whatever
// comes meanwhile.
func (o *Out) Sent() error {
	if !o.served {
		return nil
	}
	if sent := o.unit.proc.pool.outside; sent != nil {
		return sent()
	}
	o.unit.proc.pool.served(o)
	return nil
}
