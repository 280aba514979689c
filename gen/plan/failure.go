package plan

import (
	"slices"
	"time"

	"github.com/topogen/topogen/spec"
)

// deadLetter is the message type of edges for dead letters.
var deadLetter = TypeRef{Kind: Named, Import: Topo, Name: "DeadLetter"}

// Supervision has the settings for failures that concern several processors.
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

// Watch has the settings for failures of a processor's instances.
type Watch struct {
	Restarts      bool   // the file has restart for the processor, or the processor is in a group
	Policy        string // "never", "on-failure", "always"
	MaxRestarts   int
	Delay         time.Duration
	MaxDelay      time.Duration
	Window        time.Duration
	Jitter        float64
	Then          string // "stop", "skip", "retry"
	Attempts      int
	RetryDelay    time.Duration // delay before the second attempt, if Then is "retry"; 0: none
	RetryMaxDelay time.Duration
	RetryJitter   float64
	DeadLetter    int // the edge for dead letters, or -1
	Timeout       time.Duration
	Startup       time.Duration
	Shutdown      time.Duration // time to stop when a member of the group has failed; 0: it is not stopped
	Isolated      bool          // each instance runs in its own process
	Memory        int64
}

// Input is an edge to a processor that can observe its inputs.
type Input struct {
	Edge       int
	Ident      string // Order: PricingInputOrder is its constant
	Timeout    time.Duration
	ArmAtStart bool
}

// Methods lists the methods of the processor, other than handlers of messages, that may
// take its sender.
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

// Timed reports whether calls of the processor's handlers in this process have a time limit.
func (p *Processor) Timed() bool { return p.CallsTimed() && !p.Watch.Isolated }

// CallsTimed reports whether calls of handlers have a time limit, in any process. The limit
// applies always, or only while the instance stops because a member of its group has failed.
func (p *Processor) CallsTimed() bool { return p.Watch != nil && p.Watch.Abandons() }

// Abandons reports whether the runtime abandons a call that takes too long.
func (w *Watch) Abandons() bool { return w.Timeout > 0 || w.Shutdown > 0 }

// TimesInputs reports whether an input of the processor has a timeout.
func (p *Processor) TimesInputs() bool {
	return slices.ContainsFunc(p.Inputs, func(in Input) bool { return in.Timeout > 0 })
}

// watches decides which processors are watched.
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

// deadLetters adds the edge for dead letters of each processor that declares one.
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

// deadLetterCapacity equals the default capacity of a declared edge.
const deadLetterCapacity = 1024

// inputs decides which processors can observe their inputs: processors with an input
// timeout, and receivers of watched processors.
func (b *builder) inputs() {
	for i := range b.plan.Processors {
		p := &b.plan.Processors[i]
		if p.External || p.Machine != nil || !b.observes(p) {
			continue
		}
		taken := make(map[string]int)
		for _, e := range b.observed(p) {
			taken[spec.Exported(b.plan.Edges[e].Message)]++
		}
		seen := map[string]bool{"AnyClosed": true, "Closed": true, "State": true} // methods of the tracker
		for _, e := range b.observed(p) {
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

// observed lists the edges to p that it can observe. Messages of a durable edge may come from
// an earlier process.
func (b *builder) observed(p *Processor) []int {
	return slices.DeleteFunc(slices.Clone(p.Incoming), func(e int) bool { return b.plan.Edges[e].Durable != nil })
}

// inputFrom distinguishes inputs of the same message, by the sender and by the period.
func (b *builder) inputFrom(e *Edge) string {
	if e.From < 0 {
		return "Every" + e.timerIdent()
	}
	return b.plan.Processors[e.From].Ident
}

// observes reports whether an input of p has a timeout or a watched sender.
func (b *builder) observes(p *Processor) bool {
	return slices.ContainsFunc(b.observed(p), func(e int) bool {
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

// TickCrossing is the name of ticks that are sent to a process. It differs from Tick, because
// one of the user's messages may have that name.
const TickCrossing = "topo.Tick"

// Crossing is the name of the edge's message when it is sent to a process.
func (e *Edge) Crossing() string {
	if e.From < 0 {
		return TickCrossing
	}
	return e.Message
}

// LeavesProcess reports whether messages of edge e are sent to or from the process of an
// isolated processor.
func (p *Plan) LeavesProcess(e int) bool {
	edge := &p.Edges[e]
	return p.Processors[edge.To].Isolated() || edge.From >= 0 && p.Processors[edge.From].Isolated() && !edge.DeadLetter
}

// Isolated reports whether the instances of the processor run in their own processes.
func (p *Processor) Isolated() bool { return p.Watch != nil && p.Watch.Isolated }
