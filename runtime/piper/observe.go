package piper

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/topogen/topogen/runtime/internal/chain"
)

// Observer hears of what the pool does of its own accord. It is called on the
// pool's goroutines and must not block; a panic ends Run. Nothing of it is on the
// message path.
type Observer interface {
	// Moved: an instance runs on another worker now; -1 is a goroutine of its own.
	Moved(processor string, instance, from, to int)
	// Finished: all that a processor had to do is done.
	Finished(processor string)
}

// moved tells the observer that u goes from one worker to another.
func (p *Pool) moved(u *Unit, from, to *Worker) {
	u.moves.Add(1)
	if o := p.options.observer; o != nil {
		p.observe(func() { o.Moved(u.proc.Name, u.Index(), from.index, to.index) })
	}
}

// observe calls a method of the observer.
func (p *Pool) observe(call func()) { p.callUser("observer", call) }

// say logs what became of an instance or an input.
func (p *Pool) logLine(level slog.Level, text string, attrs ...slog.Attr) {
	p.callUser("logger", func() { p.log().LogAttrs(context.Background(), level, text, attrs...) })
}

// foreign calls what somebody else has made. Where it does not return Run ends, and
// not the process, or a goroutine that the topology would wait for.
func (p *Pool) callUser(who string, call func()) {
	returned := false
	defer func() {
		if returned {
			return
		}
		err := errEnded
		if cause := recover(); cause != nil {
			err = chain.OfPanic(cause)
		}
		p.finish(fmt.Errorf("pool: %s: %w\n%s", who, err, debug.Stack()))
	}()
	call()
	returned = true
}

// finished tells the observer that a group's processors are done.
func (p *Pool) finished(g *group) {
	if o := p.options.observer; o != nil {
		for _, proc := range p.processors {
			if proc.group == g {
				p.observe(func() { o.Finished(proc.Name) })
			}
		}
	}
}

// Snapshot is what a topology has done so far. Figures of a running topology
// are taken one after the other, not at one instant. Nothing is counted for a
// snapshot's sake while a message travels: times come from the turns that are
// timed anyway: one in some sixty, those after a long one, and all of an instance
// that has a goroutine of its own.
type Snapshot struct {
	Time       time.Time          `json:"time"`
	Elapsed    time.Duration      `json:"elapsed"` // since New, in nanoseconds
	Workers    int                `json:"workers"`
	Processors []ProcessorFigures `json:"processors"`       // by index
	Edges      []EdgeFigures      `json:"edges"`            // by index
	Faults     *FaultFigures      `json:"faults,omitempty"` // of all processors that are watched
}

// ProcessorFigures are the figures of one processor.
type ProcessorFigures struct {
	Name      string            `json:"name"`
	Instances []InstanceFigures `json:"instances"`        // by index; none for an external processor
	Faults    *FaultFigures     `json:"faults,omitempty"` // where the file says what becomes of failures
}

// InstanceFigures are the figures of one instance. What is left of the time
// elapsed, beside Busy and Paused, it was idle, or waited for its worker.
type InstanceFigures struct {
	Worker   int           `json:"worker"`   // -1: a goroutine of its own
	Moves    uint32        `json:"moves"`    // from one worker to another
	Busy     time.Duration `json:"busy"`     // in handlers and sends, estimated; Serve is not counted
	Paused   time.Duration `json:"paused"`   // while a queue that it sends to was full
	Len      int           `json:"len"`      // messages that wait for it
	Received uint64        `json:"received"` // messages that were given to its handlers
}

// EdgeFigures are the figures of one edge, over all pairs of instances:
// Sent = Received + Dropped + Len.
type EdgeFigures struct {
	From     string        `json:"from"`            // "" for a timer
	Every    time.Duration `json:"every,omitempty"` // of a timer, in nanoseconds
	To       string        `json:"to"`
	Message  string        `json:"message"`
	Len      int           `json:"len"`
	Sent     uint64        `json:"sent"`
	Received uint64        `json:"received"`
	Dropped  uint64        `json:"dropped"`
	Late     uint64        `json:"late,omitempty"` // of those sent: after the call that the sender was for had ended (ErrLateSend)
}

// Snapshot returns the figures of now.
func (p *Pool) Snapshot() Snapshot {
	now := p.clock()
	s := Snapshot{Time: p.time(now), Elapsed: time.Duration(now), Workers: len(p.workers)}
	for _, proc := range p.processors {
		f := ProcessorFigures{Name: proc.Name}
		for _, u := range proc.units {
			f.Instances = append(f.Instances, u.figures(now))
		}
		if proc.faults != nil {
			faults := proc.faults.figures()
			f.Faults = &faults
		}
		s.Processors = append(s.Processors, f)
	}
	if p.faulty {
		faults := p.faultFigures()
		s.Faults = &faults
	}
	for i := range p.edges {
		s.Edges = append(s.Edges, p.edgeFigures(i))
	}
	return s
}

func (u *Unit) figures(now int64) InstanceFigures {
	paused := int64(u.out.paused.Load())
	if paused < 0 {
		paused = max(0, paused+now)
	}
	f := InstanceFigures{
		Worker: u.worker.Load().index,
		Moves:  u.moves.Load(),
		Busy:   time.Duration(min(u.busy.Load(), uint64(now))), // an estimate is no more than there was
		Paused: time.Duration(paused),
	}
	for l := u.inlinks.Load(); l != nil; l = l.nextIn {
		for _, h := range l.heads {
			f.Len += h.Len()
			f.Received += h.Taken()
		}
	}
	return f
}

func (p *Pool) edgeFigures(i int) EdgeFigures {
	e := &p.edges[i]
	f := EdgeFigures{Late: e.late.Load(), Every: e.Every, To: p.processors[e.To].Name, Message: e.Message}
	if e.From >= 0 {
		f.From = p.processors[e.From].Name
	}
	discarded := e.discarded.Load() // before those taken are counted
	f.Sent, f.Dropped = e.refused.Load(), e.refused.Load()+discarded
	ended := p.ended.Load()
	for _, u := range p.processors[e.To].units {
		for l := u.inlinks.Load(); l != nil; l = l.nextIn {
			for _, h := range l.heads {
				if h.Index() == i {
					if ended && l.out != nil {
						h.Expose(h.Written()) // sent late, or in a call that still runs: no sender publishes it any more
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

// EdgeLen, EdgeSent, EdgeReceived, EdgeDropped, WorkerOf and BusyOf make a Pool
// the graph.Source of its topology.
func (p *Pool) EdgeLen(edge int) int { return p.edgeFigures(edge).Len }

// EdgeSent counts the messages sent along an edge.
func (p *Pool) EdgeSent(edge int) uint64 { return p.edgeFigures(edge).Sent }

// EdgeReceived counts the messages of an edge that were given to handlers.
func (p *Pool) EdgeReceived(edge int) uint64 { return p.edgeFigures(edge).Received }

// EdgeDropped counts the messages of an edge that were dropped.
func (p *Pool) EdgeDropped(edge int) uint64 { return p.edgeFigures(edge).Dropped }

// WorkerOf is the worker of an instance; -1 for a goroutine of its own.
func (p *Pool) WorkerOf(processor, instance int) int {
	return p.processors[processor].units[instance].worker.Load().index
}

// BusyOf estimates the time that a processor's handlers have taken.
func (p *Pool) BusyOf(processor int) time.Duration {
	busy := uint64(0)
	for _, u := range p.processors[processor].units {
		busy += u.busy.Load()
	}
	return time.Duration(busy)
}
