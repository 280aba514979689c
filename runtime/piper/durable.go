package piper

import (
	"context"
	"log/slog"
	"time"
)

// DurableEdges carries the messages of durable edges, which are kept in a store until their
// handlers have returned. Package durable/edges implements it. Its methods may be called from
// any goroutine, and must not wait, with the exception of Begin and End.
type DurableEdges interface {
	// Begin is called by Run before any instance is initialized. It opens the store. If it
	// returns true, Run returns with its error, which may be nil.
	Begin(ctx context.Context, p *Pool) (over bool, err error)
	// Start is called when the instances are initialized: from now on, they may get work.
	Start()
	// InputsClosed reports that a group gets no more messages but those of durable edges.
	// It may be called several times. DurableEdges calls Pool.CloseDurable when no
	// message of a durable edge is left.
	InputsClosed(group int)
	// Stopping reports that the context of Run has ended. Handlers that run end at their
	// next durable call. DurableEdges then calls Pool.CloseDurable for each group.
	Stopping()
	// End is called before Run returns.
	End()
	// Figures returns the figures of a durable edge.
	Figures(edge int) DurableFigures

	// BeginStepped is called in place of Begin if the topology runs under a Stepper. It
	// returns the time at which the clock of the Stepper starts, because the store may
	// have been used before.
	BeginStepped(p *Pool) (clock time.Duration)
	// Step does what is due, and passes work to instances, under a Stepper. It reports
	// whether it did something.
	Step() bool
	// Next returns when Step will have something to do although no instance has a turn.
	Next() (clock time.Duration, ok bool)
	// AwaitsTime reports whether a handler waits for the time to pass.
	AwaitsTime() bool
}

// DurableFigures are the figures of a durable edge: Sent = Received + Dropped + Len. They
// count what this process knows: the messages that its senders have sent, and those of
// earlier processes and other programs from the first call of their handlers in this
// process on. An end that this process does not see is counted later: the store is asked 10 s
// after the send, and then more and more seldom. At most 1,000,000 messages are known.
type DurableFigures struct {
	Sent, Received, Dropped uint64
	Len                     int
}

// DurableSettings are the options of durable edges, for Spec.Durable. Empty fields are not
// set.
type DurableSettings struct {
	Store        string // a folder
	Memory       any    // a *edges.Memory: the store is in memory
	Listen       string
	Logger       *slog.Logger
	DrainTimeout time.Duration

	Node   bool // the process is a node of a cluster: other nodes continue its executions
	Client bool // the process is a client of a cluster: it sends messages and has no instances
}

// DurableStore sets the folder of the store for durable edges, in place of the folder in
// the topology file. Environment: TOPOGEN_DURABLE_STORE.
func DurableStore(dir string) Option {
	return func(o *options) error { o.durable.Store = dir; return nil }
}

// DurableListen sets the host and port where programs outside use the store of durable
// edges, in place of the address in the topology file. Environment: TOPOGEN_DURABLE_LISTEN.
func DurableListen(address string) Option {
	return func(o *options) error { o.durable.Listen = address; return nil }
}

// DurableMemory keeps the store of durable edges in memory. store is a *edges.Memory.
func DurableMemory(store any) Option {
	return func(o *options) error { o.durable.Memory = store; return nil }
}

// newDurable calls Spec.Durable.
func (p *Pool) newDurable() (err error) {
	if p.spec.Durable == nil {
		return nil
	}
	s := p.options.durable
	s.DrainTimeout, s.Logger = p.options.drainTimeout, p.log()
	s.Client = p.options.node.Client != nil
	s.Node = p.border != nil && !s.Client
	if p.durable, err = p.spec.Durable(s); err != nil {
		return err
	}
	for i := range p.edges {
		if g := p.processors[p.edges[i].To].group; p.edges[i].Durable && !g.durable {
			g.durable = true
			g.openInputs++ // closed by CloseDurable
		}
	}
	return nil
}

// Durable is the carrier of the topology's durable edges.
func (x *External) Durable() DurableEdges { return x.pool.durable }

// Durable is the carrier of the topology's durable edges. It is nil for the sender of a
// recorder.
func (o *Out) Durable() DurableEdges {
	if o.unit == nil || o.unit.proc == nil {
		return nil
	}
	return o.unit.proc.pool.durable
}

// Fail ends Run with an error, for DurableEdges.
func (p *Pool) Fail(err error) { p.lifecycle.end(err) }

// GroupOf is the group of a processor.
func (p *Pool) GroupOf(processor int) int { return p.processors[processor].Group }

// CloseDurable closes the durable edges into a group. Only the first call has an effect.
func (p *Pool) CloseDurable(group int) {
	g := p.groups[group]
	g.mu.Lock()
	if !g.durable {
		g.mu.Unlock()
		return
	}
	g.durable = false
	g.openInputs--
	g.beginClosing()
}

// Await runs steps of the Stepper until the condition holds, for a caller that waits for a
// result. It returns false if the condition does not hold and nothing is left to run, or if
// a handler waits, because a step must end before the next one begins.
func (p *Pool) Await(holds func() bool) bool {
	s := p.stepper
	if s == nil || s.inStep.Load() {
		return holds()
	}
	s.stepUntil(holds)
	return holds()
}

// Clock is the time since the pool was started, or the time of the Stepper's clock since
// Epoch.
func (p *Pool) Clock() time.Duration { return time.Duration(p.clock()) }

// Epoch is the start of the clock of a Stepper.
func Epoch() time.Time { return epoch }

// Mute drops the messages that instances send along other edges from now on. It must be called
// before any instance runs.
func (p *Pool) Mute() { p.muted = true }
