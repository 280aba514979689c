package piper

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/topogen/topogen/runtime/internal/chain"
)

// Observer is called when an instance moves and when a processor finishes. The pool
// calls it on its own goroutines, so it must not block. A panic ends Run. It is never
// called for single messages.
type Observer interface {
	// Moved reports that an instance now runs on another worker. -1 is a goroutine of
	// its own.
	Moved(processor string, instance, from, to int)
	// Finished reports that a processor has finished.
	Finished(processor string)
}

// moved calls the observer for an instance that moves from one worker to another.
func (b *logbook) moved(u *Unit, from, to *Worker) {
	u.moves.Add(1)
	if o := b.pool.options.observer; o != nil {
		b.observe(func() { o.Moved(u.proc.Name, u.Index(), from.index, to.index) })
	}
}

// observe calls a method of the observer.
func (b *logbook) observe(call func()) { b.callUser("observer", call) }

// line logs an event of an instance or an input.
func (b *logbook) line(level slog.Level, text string, attrs ...slog.Attr) {
	b.callUser("logger", func() { b.pool.log().LogAttrs(context.Background(), level, text, attrs...) })
}

// callUser calls user code such as an observer or a logger. If the call panics or ends
// the goroutine, Run ends with an error. The process goes on, and no goroutine of the
// topology waits in vain.
func (b *logbook) callUser(who string, call func()) {
	returned := false
	defer func() {
		if returned {
			return
		}
		err := errEnded
		if cause := recover(); cause != nil {
			err = chain.OfPanic(cause)
		}
		b.pool.lifecycle.end(fmt.Errorf("pool: %s: %w\n%s", who, err, debug.Stack()))
	}()
	call()
	returned = true
}

// finished calls the observer for each processor of a group that has finished.
func (b *logbook) finished(g *group) {
	p := b.pool
	if o := p.options.observer; o != nil {
		for _, proc := range p.processors {
			if proc.group == g {
				b.observe(func() { o.Finished(proc.Name) })
			}
		}
	}
}

// Snapshot has the figures of a topology since its start. The figures of a running
// topology are read one after the other, not at one instant. Sending a message does no
// extra work for snapshots: times come from the turns that are timed for placement.
// These are about one in sixty short turns, each turn after a long turn, and all turns
// of an instance with a goroutine of its own.
type Snapshot struct {
	Topology   string             `json:"topology"` // its name in the topology file
	Time       time.Time          `json:"time"`
	Elapsed    time.Duration      `json:"elapsed"` // since New, in nanoseconds
	Workers    int                `json:"workers"`
	Processors []ProcessorFigures `json:"processors"`       // by index
	Edges      []EdgeFigures      `json:"edges"`            // by index
	Faults     *FaultFigures      `json:"faults,omitempty"` // of all processors with a Watch or Events; nil if there are none
}

// ProcessorFigures are the figures of one processor.
type ProcessorFigures struct {
	Name      string            `json:"name"`
	Instances []InstanceFigures `json:"instances"`        // by index; empty for an external processor
	Faults    *FaultFigures     `json:"faults,omitempty"` // if the processor has a Watch or Events
}

// InstanceFigures are the figures of one instance. In the rest of the elapsed time,
// neither Busy nor Paused, the instance was idle or waited for its worker.
type InstanceFigures struct {
	Worker   int           `json:"worker"`   // -1 for a goroutine of its own
	Moves    uint32        `json:"moves"`    // number of changes of the worker
	Busy     time.Duration `json:"busy"`     // time in handlers and sends, estimated, without Serve
	Paused   time.Duration `json:"paused"`   // time in which a queue that it sends to was full
	Len      int           `json:"len"`      // queued messages
	Received uint64        `json:"received"` // messages passed to handlers
}

// EdgeFigures are the figures of one edge, summed over its links: Sent = Received +
// Dropped + Len. Those of a durable edge are described at DurableFigures. In a cluster they
// count what the instances of this node have sent, and Arrived and Waiting what those of
// other nodes have sent to instances of this node. Received includes the messages that
// another node has dropped after their arrival. That node counts them, for example in
// FaultFigures.Dropped.
type EdgeFigures struct {
	From     string        `json:"from"`            // "" for a timer
	Every    time.Duration `json:"every,omitempty"` // of a timer, in nanoseconds
	To       string        `json:"to"`
	Message  string        `json:"message"`
	Len      int           `json:"len"`
	Sent     uint64        `json:"sent"`
	Received uint64        `json:"received"`
	Dropped  uint64        `json:"dropped"`
	Arrived  uint64        `json:"arrived,omitempty"` // messages of other nodes that were decoded
	Waiting  int           `json:"waiting,omitempty"` // messages among Arrived that no handler has taken yet
	Late     uint64        `json:"late,omitempty"`    // messages among Sent that were sent after the call of the sender had ended (ErrLateSend)
}

// figures has the figures of the edges and processors of a pool. With the methods Deliver and
// Ping it is the graph.Source of the topology.
type figures struct{ pool *Pool }

func (x *figures) instance(u *Unit, now int64) InstanceFigures {
	paused := int64(u.out.paused.Load())
	if paused < 0 {
		paused = max(0, paused+now)
	}
	f := InstanceFigures{
		Worker: u.worker.Load().index,
		Moves:  u.moves.Load(),
		Busy:   time.Duration(min(u.busy.Load(), uint64(now))), // the estimate must not exceed the elapsed time
		Paused: time.Duration(paused),
	}
	p := x.pool
	p.figuresMu.Lock()
	defer p.figuresMu.Unlock()
	f.Received = u.goneTaken
	for l := u.inlinks.Load(); l != nil; l = l.nextIn.Load() {
		for _, h := range l.heads {
			f.Len += h.Len()
			f.Received += h.Taken()
		}
	}
	return f
}

func (x *figures) edge(i int) EdgeFigures {
	p := x.pool
	e := &p.edges[i]
	f := EdgeFigures{Late: e.late.Load(), Every: e.Every, To: p.processors[e.To].Name, Message: e.Message}
	if e.From >= 0 {
		f.From = p.processors[e.From].Name
	}
	if e.Durable {
		d := p.durable.Figures(i)
		f.Sent, f.Received, f.Dropped, f.Len = d.Sent, d.Received, d.Dropped, d.Len
		return f
	}
	p.figuresMu.Lock()
	defer p.figuresMu.Unlock()
	discarded := e.discarded.Load() // read before the taken counts, so that Received is not negative
	f.Sent, f.Dropped = e.refused.Load(), e.refused.Load()+discarded
	f.Sent, f.Dropped, f.Received = f.Sent+e.goneSent.Load(), f.Dropped+e.goneDropped.Load(), e.goneTaken.Load()
	ended := p.ended.Load()
	for _, u := range p.processors[e.To].units {
		for l := u.inlinks.Load(); l != nil; l = l.nextIn.Load() {
			for _, h := range l.heads {
				if h.Index() == i {
					if l.arrives() {
						f.Arrived += h.Sent()
						f.Waiting += h.Len()
						continue
					}
					if ended && l.out != nil {
						h.Expose(h.Written()) // no sender will publish messages that were sent late or in a call that still runs
					}
					f.Received += h.Taken()
					f.Dropped += h.Dropped()
					f.Len += h.Len()
					f.Sent += h.Sent()
				}
			}
		}
	}
	f.Received -= discarded
	return f
}

// sentInCalls counts the messages of an edge that were sent in calls that still run and are not
// visible to the receivers.
func (x *figures) sentInCalls(edge int) (n int) {
	p := x.pool
	for _, u := range p.processors[p.edges[edge].To].units {
		for l := u.inlinks.Load(); l != nil; l = l.nextIn.Load() {
			for _, h := range l.heads {
				if h.Index() == edge && l.out != nil && !l.arrives() {
					published := h.Published()
					n += max(int(h.Written()-published), 0) // Written is too low while a queue grows
				}
			}
		}
	}
	return n
}

// EdgeLen is the number of queued messages of an edge. EdgeLen and the following
// methods implement graph.Source.
func (x *figures) EdgeLen(edge int) int { return x.edge(edge).Len }

// EdgeSent counts the messages sent along an edge.
func (x *figures) EdgeSent(edge int) uint64 { return x.edge(edge).Sent }

// EdgeReceived counts the messages of an edge that were passed to handlers.
func (x *figures) EdgeReceived(edge int) uint64 { return x.edge(edge).Received }

// EdgeDropped counts the messages of an edge that were dropped.
func (x *figures) EdgeDropped(edge int) uint64 { return x.edge(edge).Dropped }

// WorkerOf is the index of the worker of an instance, or -1 for a goroutine of its own.
func (x *figures) WorkerOf(processor, instance int) int {
	return x.pool.processors[processor].units[instance].worker.Load().index
}

// BusyOf estimates the time that a processor's handlers have taken.
func (x *figures) BusyOf(processor int) time.Duration {
	busy := uint64(0)
	for _, u := range x.pool.processors[processor].units {
		busy += u.busy.Load()
	}
	return time.Duration(busy)
}
