package table

import (
	"context"
	"sync"
	"sync/atomic"
)

// Replica is the copy of the table on one node. Lookups take no lock and see each change
// of a container as soon as it is applied here. A replica may lag behind the log; Sync of
// the [Table] waits until it has caught up. Only the engine changes it.
type Replica struct {
	mu      sync.RWMutex // locked for writing while the state changes
	state   *State
	events  []*Event      // the last events, in order
	weight  int           // of events
	from    Revision      // the events after this revision are in events
	adopted uint64        // grows with each Adopt
	changed chan struct{} // closed at the next change; nil: no goroutine waits
	ended   chan struct{} // closed when there will be no more changes
	err     error         // why; set before ended is closed

	current atomic.Pointer[State] // state, for lookups
}

// NewReplica returns a replica of an empty table.
func NewReplica() *Replica {
	r := &Replica{state: NewState(), ended: make(chan struct{})}
	r.current.Store(r.state)
	return r
}

// Lookup returns the node where a container is, and the container's epoch. processor is
// the processor's index, see [Replica.Processor]. The node is nil if the container has no
// place or does not exist. The caller must not change the node. Lookup takes no lock and
// does not allocate.
func (r *Replica) Lookup(processor, instance int) (*Node, uint64) {
	return r.current.Load().Lookup(processor, instance)
}

// Processor returns the index of a processor and the number of its instances. The index
// is valid until an event with Define or Snapshot.
func (r *Replica) Processor(name string) (index, instances int, ok bool) {
	l := r.current.Load().layout.Load()
	if index, ok = l.byName[name]; ok {
		instances = len(l.processors[index].places)
	}
	return index, instances, ok
}

// Node returns the node with a name, or nil. The caller must not change it.
func (r *Replica) Node(name string) *Node { return r.current.Load().layout.Load().named(name) }

// Gone reports whether the process of a node has left, or was forgotten: the table has a plan,
// and the node is not in it, or has left. A node that joins is gone until its first transaction.
func (r *Replica) Gone(name string) bool {
	l := r.current.Load().layout.Load()
	n := l.named(name)
	return l.plan.Hash != "" && (n == nil || n.State == Left)
}

// Nodes returns the nodes in the order of their names. The caller must change neither them
// nor the slice. It is the same slice until a node changes, and takes no time.
func (r *Replica) Nodes() []*Node { return r.current.Load().layout.Load().sorted() }

// Plan returns the hash of the plan of the table; "" before the first Define.
func (r *Replica) Plan() string { return r.FullPlan().Hash }

// FullPlan returns the plan of the table with its description.
func (r *Replica) FullPlan() Plan { return r.current.Load().layout.Load().plan }

// End returns how far the nodes have agreed about the end, nil if they have agreed about
// nothing. The caller must not change it.
func (r *Replica) End() *End { return r.current.Load().layout.Load().end }

// Revision returns the revision of the last change that was applied here.
func (r *Replica) Revision() Revision {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.state.revision
}

// Snapshot returns the content of the table, all of it at one revision.
func (r *Replica) Snapshot() *Snapshot {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.state.Snapshot()
}

// Append appends the encoded state to b, see [ReadState].
func (r *Replica) Append(b []byte) []byte {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.state.Append(b)
}

// Watch returns a watcher of all changes after a revision. If the replica does not have
// all of these changes any more, or from is zero, the first event is a snapshot. A watcher
// takes no memory while it waits, and needs no Close.
func (r *Replica) Watch(from Revision) *Watcher { return &Watcher{replica: r, at: from} }

// Apply applies a command, for engines. revision must be above the revision of the
// replica.
func (r *Replica) Apply(revision Revision, now int64, c *Command) Outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	out, e := r.state.Apply(revision, now, c)
	r.publish(e)
	return out
}

// ApplyTo applies a command to a state, for engines that own the state. If s is the state
// of the replica, the watchers get the event. adopted is false if it is another state, and
// the engine must call Adopt.
func (r *Replica) ApplyTo(s *State, revision Revision, now int64, c *Command) (out Outcome, adopted bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out, e := s.Apply(revision, now, c)
	if r.state != s {
		return out, false
	}
	r.publish(e)
	return out, true
}

// Adopt replaces the state, for engines that own it: because a snapshot was installed. All
// watchers get a snapshot. From now on the state must be changed by ApplyTo only.
func (r *Replica) Adopt(s *State) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state == s {
		return
	}
	r.state = s
	r.current.Store(s)
	clear(r.events)
	r.events, r.weight, r.from = r.events[:0], 0, s.revision
	r.adopted++
	r.wake()
}

// publish adds an event, which may be nil. The lock must be held.
func (r *Replica) publish(e *Event) {
	defer r.wake()
	if e == nil {
		return
	}
	r.events = append(r.events, e)
	r.weight += e.weight()
	drop := 0
	for len(r.events)-drop > historyEvents || r.weight > historyWeight {
		r.from = r.events[drop].Revision
		r.weight -= r.events[drop].weight()
		drop++
		if drop == len(r.events) {
			break
		}
	}
	if drop > 0 {
		n := copy(r.events, r.events[drop:])
		clear(r.events[n:])
		r.events = r.events[:n]
	}
}

// wake wakes the goroutines that wait for a change. The lock must be held.
func (r *Replica) wake() {
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

// Fail ends all watchers with an error, for engines. Only the first call has an effect.
func (r *Replica) Fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
		close(r.ended)
		r.wake()
	}
}

// Done implements Done of a [Table]: the channel is closed by Fail.
func (r *Replica) Done() <-chan struct{} { return r.ended }

// Err implements Err of a [Table]: it returns the error of Fail.
func (r *Replica) Err() error {
	select {
	case <-r.ended:
		return r.err
	default:
		return nil
	}
}

// Wait waits until the replica has applied the log up to a revision.
func (r *Replica) Wait(ctx context.Context, revision Revision) error {
	return r.wait(ctx, func() bool { return r.state.revision.Compare(revision) >= 0 })
}

// WaitFor waits until ready returns true. It calls ready at once and after each change.
func (r *Replica) WaitFor(ctx context.Context, ready func(*Replica) bool) error {
	for {
		r.mu.Lock()
		changed, err := r.next(), r.err
		r.mu.Unlock()
		switch {
		case ready(r):
			return nil
		case err != nil:
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// wait waits until ready returns true. ready is called with the lock held.
func (r *Replica) wait(ctx context.Context, ready func() bool) error {
	for {
		r.mu.Lock()
		done, err := ready(), r.err
		var changed chan struct{}
		if !done && err == nil {
			changed = r.next()
		}
		r.mu.Unlock()
		if done || err != nil {
			return errIf(!done, err)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func errIf(failed bool, err error) error {
	if failed {
		return err
	}
	return nil
}

// next returns the channel that is closed at the next change. The lock must be held.
func (r *Replica) next() chan struct{} {
	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	return r.changed
}
