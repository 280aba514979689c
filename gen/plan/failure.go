package plan

import (
	"slices"
	"time"

	"github.com/topogen/topogen/spec"
)

// deadLetter is the type of what a dead letter's edge carries.
var deadLetter = TypeRef{Kind: Named, Import: Topo, Name: "DeadLetter"}

// Supervision is what the file says about failures of the topology as a whole.
type Supervision struct {
	Groups []RestartGroup
}

// RestartGroup is a group of processors whose instances are restarted together.
type RestartGroup struct {
	Name       string
	Processors []int
	Strategy   string // "one-for-one", "one-for-all", "rest-for-one"
	Intensity  int
	Period     time.Duration
}

// Watch says what becomes of instances of a processor that fail.
type Watch struct {
	Restarts      bool   // the file says restart, or the processor is in a group
	Policy        string // "never", "on-failure", "always"
	MaxRestarts   int
	Delay         time.Duration
	MaxDelay      time.Duration
	Window        time.Duration
	Jitter        float64
	Then          string // "stop", "skip", "retry"
	Attempts      int
	RetryDelay    time.Duration // with retry, before the second attempt at a message; 0: none
	RetryMaxDelay time.Duration
	RetryJitter   float64
	DeadLetter    int // the edge that takes messages which cannot be handled; -1
	Timeout       time.Duration
	Startup       time.Duration
	Shutdown      time.Duration // when it is stopped with a failed sibling; 0: no strategy does that
	Isolated      bool          // in a process of its own
	Memory        int64
}

// Input is an edge to a processor that can hear what becomes of it.
type Input struct {
	Edge       int
	Ident      string // Order: PricingInputOrder is its constant
	Timeout    time.Duration
	ArmAtStart bool
}

// Methods lists those methods of the processor that may take its sender, besides
// the handlers of messages.
func (p *Processor) Methods() (list []*Method) {
	for _, m := range []*Method{
		p.Ping, p.Serve, p.Finish, p.InputClosed, p.InputRecovered, p.ProcessorRestarted, p.AllInputsClosed,
	} {
		if m != nil {
			list = append(list, m)
		}
	}
	return list
}

// Timed reports whether calls of the processor's handlers have a time that they
// may take, in this process.
func (p *Processor) Timed() bool { return p.CallsTimed() && !p.Watch.Isolated }

// CallsTimed reports whether calls have a time that they may take, wherever they
// run: always, or when the instance is stopped with a failed sibling.
func (p *Processor) CallsTimed() bool { return p.Watch != nil && p.Watch.Abandons() }

// Abandons reports whether a call that takes too long is given up.
func (w *Watch) Abandons() bool { return w.Timeout > 0 || w.Shutdown > 0 }

// TimesInputs reports whether an input of the processor has a timeout.
func (p *Processor) TimesInputs() bool {
	return slices.ContainsFunc(p.Inputs, func(in Input) bool { return in.Timeout > 0 })
}

// watches says which processors are watched.
func (b *builder) watches() {
	grouped := make(map[int]bool)
	shutdown := make(map[int]time.Duration)
	s := new(Supervision)
	for _, g := range b.topology.Groups {
		for _, p := range g.Processors {
			grouped[p] = true
			if g.Strategy != spec.OneForOne {
				shutdown[p] = g.Shutdown
			}
		}
		s.Groups = append(s.Groups, RestartGroup{
			Name: g.Name.Value, Processors: g.Processors, Strategy: string(g.Strategy), Intensity: g.Intensity, Period: g.Period,
		})
	}
	for i := range b.topology.Processors {
		if w := watchOf(&b.topology.Processors[i], grouped[i]); w != nil {
			w.Shutdown = shutdown[i]
			b.plan.Processors[i].Watch = w
			b.plan.Supervision, b.plan.FaultLog = s, b.topology.HealthCheckInterval
		}
	}
}

// watchOf is nil for a processor whose failure ends the topology.
func watchOf(p *spec.Processor, grouped bool) *Watch {
	isolated := p.Isolation == spec.Process
	if p.External || !p.Restart.Given && !grouped && !p.OnError.Given && !isolated && p.Health.Timeout == 0 && p.Health.StartupTimeout == 0 {
		return nil
	}
	return &Watch{
		Restarts:      p.Restart.Given || grouped,
		Policy:        string(p.Restart.Policy),
		MaxRestarts:   p.Restart.MaxRestarts,
		Delay:         p.Restart.Delay,
		MaxDelay:      p.Restart.MaxDelay,
		Window:        p.Restart.Window,
		Jitter:        p.Restart.Jitter,
		Then:          string(p.OnError.Then),
		Attempts:      p.Attempts(),
		RetryDelay:    p.OnError.Delay,
		RetryMaxDelay: p.OnError.MaxDelay,
		RetryJitter:   p.OnError.Jitter,
		DeadLetter:    -1,
		Timeout:       p.Health.Timeout,
		Startup:       p.Health.StartupTimeout,
		Isolated:      isolated,
		Memory:        p.Memory,
	}
}

// deadLetters appends, for each processor that names where messages go that it
// cannot handle, the edge which they take.
func (b *builder) deadLetters() {
	for i := range b.plan.Processors {
		p := &b.plan.Processors[i]
		to := b.topology.Processors[i].OnError.DeadLetterTo
		if p.Watch == nil || b.topology.Processors[i].OnError.DeadLetter.Value == "" || to < 0 {
			continue
		}
		p.Watch.DeadLetter = len(b.plan.Edges)
		e := Edge{
			Ident:      p.Ident + b.plan.Processors[to].Ident + "DeadLetter",
			From:       i,
			To:         to,
			Message:    "DeadLetter",
			Type:       deadLetter,
			Capacity:   deadLetterCapacity,
			Full:       string(spec.Block),
			ReplyEdge:  -1,
			ReplyOf:    -1,
			DeadLetter: true,
		}
		if b.plan.Processors[to].Instances > 1 {
			e.Route = Local
		}
		b.plan.Edges = append(b.plan.Edges, e)
	}
}

// deadLetterCapacity is the default of an edge that the file declares.
const deadLetterCapacity = 1024

// inputs says which processors can hear what becomes of their inputs: those with
// a timeout at one, and those that a watched processor sends to.
func (b *builder) inputs() {
	for i := range b.plan.Processors {
		p := &b.plan.Processors[i]
		if p.External || p.Machine != nil || !b.hears(p) {
			continue
		}
		taken := make(map[string]int)
		for _, e := range p.Incoming {
			taken[spec.Exported(b.plan.Edges[e].Message)]++
		}
		seen := map[string]bool{"AnyClosed": true, "Closed": true, "State": true} // methods of the tracker
		for _, e := range p.Incoming {
			edge := &b.plan.Edges[e]
			in := Input{Edge: e, Ident: spec.Exported(edge.Message)}
			if taken[in.Ident] > 1 {
				in.Ident = b.inputFrom(edge) + in.Ident
			}
			in.Ident = unique(seen, in.Ident)
			if e < len(b.topology.Edges) {
				in.Timeout, in.ArmAtStart = b.topology.Edges[e].InputTimeout, b.topology.Edges[e].ArmAtStart
			}
			p.Inputs = append(p.Inputs, in)
		}
		if p.TimesInputs() {
			b.plan.FaultLog = b.topology.HealthCheckInterval
		}
	}
}

// inputFrom tells inputs of one message apart: by who sends it, and how often.
func (b *builder) inputFrom(e *Edge) string {
	if e.From < 0 {
		return "Every" + e.timerIdent()
	}
	return b.plan.Processors[e.From].Ident
}

func (b *builder) hears(p *Processor) bool {
	return slices.ContainsFunc(p.Incoming, func(e int) bool {
		from := b.plan.Edges[e].From
		return from >= 0 && b.plan.Processors[from].Watch != nil ||
			e < len(b.topology.Edges) && b.topology.Edges[e].InputTimeout > 0
	})
}

// LeavesLetters reports whether messages of edge e may become dead letters.
func (p *Plan) LeavesLetters(e int) bool {
	edge := &p.Edges[e]
	w := p.Processors[edge.To].Watch
	return edge.From >= 0 && w != nil && w.DeadLetter >= 0
}

// TickCrossing is what the ticks of timers are called where they cross to a
// process: a message of the user's may be called Tick.
const TickCrossing = "topo.Tick"

// Crossing is what the edge's message is called where it crosses to a process.
func (e *Edge) Crossing() string {
	if e.From < 0 {
		return TickCrossing
	}
	return e.Message
}

// Crosses reports whether messages of edge e cross to or from a process.
func (p *Plan) Crosses(e int) bool {
	edge := &p.Edges[e]
	return p.Processors[edge.To].Isolated() || edge.From >= 0 && p.Processors[edge.From].Isolated() && !edge.DeadLetter
}

// Isolated reports whether the instances of the processor run in processes.
func (p *Processor) Isolated() bool { return p.Watch != nil && p.Watch.Isolated }
