package piper

import (
	"reflect"

	"github.com/topogen/topogen/runtime/internal/count"
	"github.com/topogen/topogen/runtime/queue"
	"github.com/topogen/topogen/runtime/topo"
)

// Out is the runtime's part of an instance's sender. It belongs to the goroutine that
// runs the instance.
type Out struct {
	_       [0]func() // not comparable; see Unit
	unit    *Unit
	made    *Link               // the last link that was made
	dirty   count.Pointer[Link] // list of links with unpublished messages; expose reads it
	filled  queue.HeadList      // queues that became full since the last settle
	full    int32               // number of reasons to pause: queues that are full and lead out of the group, and the instance being down
	calling bool                // a call of the instance runs, which may send
	working bool                // a durable function runs
	inServe bool                // Serve runs, so each send publishes and waits
	pauses  bool                // a queue is full, and paused counts the time
	paused  count.Count         // nanoseconds in which a queue was full; while one is full, minus the time at which it became full
}

// First begins to send m if the sender has no link to the processor with index to. It
// makes the link, or the table of links if that processor has several instances, and
// returns true. In the test of a handler it appends m to the recorder's fields and
// returns false; then nothing is left to do.
func (o *Out) First(to int, m any, fields string) bool {
	if o.unit != nil {
		if keep, ok := o.unit.cell.of.(keeper); ok {
			keep(m, fields)
			return false
		}
		if o.unit.proc.pool.muted {
			return false
		}
	}
	o.Link(to, -1)
	return true
}

// errNoSender is the panic of a sender that the runtime did not make.
const errNoSender = "topogen: this sender comes neither from a topology nor from a recorder; in the test of a handler use the Sender of a recorder"

// Link makes the link to an instance.
func (o *Out) Link(to, instance int) {
	if o.unit == nil {
		panic(errNoSender)
	}
	o.unit.cell.Link(to, instance)
}

// Index is the index of the sending instance.
func (o *Out) Index() int {
	if o == nil || o.unit == nil {
		return 0
	}
	return int(o.unit.index)
}

// publish makes all unpublished messages visible. It returns a link within the group
// that carried some of them, or nil.
func (o *Out) publish(w *Worker) (within *Link) {
	dirty := o.dirty.Own()
	for l := dirty; l != nil; l = l.nextDirty.Own() {
		l.dirty = false
		l.publish(w)
		if l.inCycle {
			within = l
		}
	}
	if dirty != nil {
		o.dirty.StoreRelease(nil) // at the end: other goroutines may look for messages that are not published
	}
	return within
}

// expose makes the messages of the instance visible while its goroutine is in a handler
// and may continue to send. If the handler returns in the meantime, its goroutine publishes
// the messages too, and may begin another list, into which expose then continues. Both are
// harmless: to expose a link only makes more of its messages visible.
func (o *Out) expose() {
	for l := o.dirty.Load(); l != nil; l = l.nextDirty.Load() {
		l.expose()
	}
}

// settle makes the receivers of full queues report when there is room.
func (o *Out) settle() {
	for h := o.filled.Pop(); h != nil; h = o.filled.Pop() {
		if !h.Await() {
			o.hasRoomAgain(h)
		} else if o.unit.proc.pool.border != nil && o.unit.proc.pool.edges[h.Index()].inCycle {
			o.unit.proc.group.reportFull()
		}
	}
	if o.full > 0 && !o.pauses {
		o.pauses = true
		o.paused.StoreRelease(o.paused.Load() - uint64(o.unit.proc.pool.clock()))
	}
}

// hasRoomAgain ends the full state of one queue.
func (o *Out) hasRoomAgain(h *queue.Head) {
	h.Drained()
	if o.unit.proc.pool.edges[h.Index()].inCycle {
		o.unit.proc.group.hasRoomAgain()
		return
	}
	o.lessFull()
}

// lessFull removes one of the reasons for which the instance gets no turns.
func (o *Out) lessFull() {
	if o.full--; o.full == 0 && o.pauses {
		o.pauses = false
		o.paused.StoreRelease(o.paused.Load() + uint64(o.unit.proc.pool.clock()))
	}
}

// Open is called at the start of every send of a processor without inputs. Within Serve
// it returns an error once the topology stops, and the message is not accepted.
func (o *Out) Open() error {
	if !o.inServe {
		return nil
	}
	if o.unit.watch().mustStop() {
		return topo.ErrStopping
	}
	return o.unit.proc.pool.serveState()
}

// Sent is called at the end of every send of a processor without inputs. Within Serve it
// publishes the message at once and waits while a queue is full. The message was
// accepted, even if the topology stops during the wait.
func (o *Out) Sent() error {
	if !o.inServe {
		return nil
	}
	if sent := o.unit.proc.pool.forward; sent != nil {
		return sent()
	}
	o.unit.proc.pool.sentInServe(o)
	return nil
}

// Keep appends m to the fields of a recorder if the sender belongs to one. It panics if the
// sender comes neither from a topology nor from a recorder.
func (o *Out) Keep(m any, fields string) (kept bool) {
	if o.unit == nil {
		panic(errNoSender)
	}
	keep, ok := o.unit.cell.of.(keeper)
	if ok {
		keep(m, fields)
	}
	return ok
}

// Works reports whether the sending instance runs a durable function.
func (o *Out) Works() bool { return o.working }

// NoInstance counts a message whose route returned no valid instance.
func (o *Out) NoInstance(edge int) error {
	if o == nil || o.unit == nil { // the sender of a recorder
		return topo.ErrNoInstance
	}
	return o.unit.proc.pool.noInstance(edge)
}

// Join makes link, which is new, lead from the sender o to the unit to. link points to
// a LinkOf for the given edge, and drain passes its messages to the handler. Join uses
// reflection so that the generated code for each edge is small.
func (o *Out) Join(to *Unit, link any, edge, capacity int, drain Drain) {
	o.JoinInlet(to, link, edge, capacity, drain)
}

// JoinInlet is Join with any Inlet.
func (o *Out) JoinInlet(to *Unit, link any, edge, capacity int, in Inlet) {
	v := reflect.ValueOf(link).Elem()
	l := v.Field(0).Addr().Interface().(*Link)
	l.Join(in, o, to, queue.Init(v.Field(1).Addr().Interface(), edge, capacity, l))
}
