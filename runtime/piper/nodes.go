package piper

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/topogen/topogen/runtime/topo"
)

// Nodes connects a pool with the same topology on the other nodes of a cluster. Package
// cluster implements it. Its methods may be called from any goroutine of the pool, and
// must not wait, with the exception of Begin and End.
type Nodes interface {
	// Begin is called by Run, before anything else. It calls Pool.Place when it is
	// known which instances this node runs.
	Begin(ctx context.Context, p *Pool) error
	// Find reports whether a name is that of this node, or, for a client, of the node whose
	// instances count as its own, and whether a node with this name
	// takes part in the topology.
	Find(node string) (here, known bool)
	// Others is how many other nodes take part in the topology.
	Others() int
	// Forward takes messages for an instance of another node.
	Forward(o *Outlet, c Chunk)
	// Handled reports that n messages of a, counted from its beginning, were handled.
	// Their node need not keep them any longer.
	Handled(a *Arrivals, n uint64)
	// Lost reports that n messages of a, counted from its beginning, could not be decoded
	// and were dropped.
	Lost(a *Arrivals, n uint64)
	// Reply sends the reply to a call, or its error.
	Reply(a *Arrivals, call Call, reply []byte, err error)
	// Quiet reports that a group has nothing to do on this node. It waits for Agree.
	Quiet(group int)
	// Stopping reports that the context of Run has ended: this node begins to drain.
	Stopping()
	// End is called before Run returns, with its error. After End, no other method is
	// called.
	End(err error)
}

// NodeSettings are the options of a node, for Spec.Cluster. Empty fields are not set.
type NodeSettings struct {
	Name, Address, Dir string
	Roles              []string
	Transport          any // a transport.Transport
	Client             any // a *cluster.ClientConfig: the process is a client of the cluster and no node
	Logger             *slog.Logger
}

// Place constructs the instances that this node runs. All others run on other nodes.
// Nodes.Begin calls it once, before the instances are initialized.
func (p *Pool) Place(isHere func(processor, instance int) bool) error {
	for i, proc := range p.processors {
		for j, u := range proc.units {
			if j == proc.instances() || !isHere(i, j) {
				continue
			}
			if err := p.constructHere(u); err != nil {
				return err
			}
			proc.away[j] = nil
			p.activate(u)
		}
	}
	return nil
}

// constructHere makes the value of an instance that was adopted without one.
func (p *Pool) constructHere(u *Unit) error {
	s := &u.proc.Processor
	parts, err := s.Instance(topo.Instance{Processor: s.Name, Index: u.Index(), Number: u.proc.instances()}, true)
	if err == nil {
		cell{parts.Cell}.Adopted()
	}
	return err
}

// OnAllOthers is the ToInstance of a Pair whose messages go to all instances of the
// processor on all other nodes.
const OnAllOthers = -1

// instances is the number of instances of a processor, on each node if it has Others.
func (p *processor) instances() int {
	if p.Others && p.pool.nodes != nil {
		return len(p.units) - 1
	}
	return len(p.units)
}

// Everywhere is the number of links that a message to all instances of a processor needs,
// of which this node has n. In a cluster there is one more: to all other nodes.
func (o *Out) Everywhere(n int) int {
	if o.unit != nil && o.unit.proc.pool.nodes != nil {
		return n + 1
	}
	return n
}

// Everywhere is Out.Everywhere for messages from outside.
func (x *External) Everywhere(n int) int {
	if x.pool.nodes != nil {
		return n + 1
	}
	return n
}

// away returns the part of a unit that another node runs, or nil if this node runs it.
func (u *Unit) away() *away {
	if u.proc.away == nil {
		return nil
	}
	return u.proc.away[u.index]
}

// IsAway reports whether another node runs the instance.
func (u *Unit) IsAway() bool { return u.away() != nil }

// Fail ends Run with an error, for Nodes.
func (p *Pool) Fail(err error) { p.finish(err) }

// Leave ends Run without an error although its groups have not finished: the node leaves
// the cluster after it has handled what was queued on it.
func (p *Pool) Leave() { p.finish(nil) }

// StopTimers ends the ticks of groups that hold no work. Nodes calls it before a node leaves:
// inputs that are open on other nodes keep timers open, and their messages keep the node
// busy.
func (p *Pool) StopTimers() { p.timersStopped.Store(true) }

// Groups is the number of groups of processors that finish together.
func (p *Pool) Groups() int { return len(p.groups) }

// GroupOf is the group of a processor.
func (p *Pool) GroupOf(processor int) int { return p.processors[processor].Group }

// GroupState describes how far a group is on this node.
type GroupState struct {
	Phase uint8  // 0 open, 1 closing, 2 finishing, 3 flushing, 4 finished
	Quiet bool   // it has nothing to do here until a message comes from another node
	Turns uint32 // changes whenever it had something to do
	Empty bool   // it has no instances, as an external processor, so it never finishes
}

// Phases of a GroupState. In GroupClosing and GroupFlushing, a quiet group waits for Agree.
const (
	GroupOpen     = uint8(phaseOpen)
	GroupClosing  = uint8(phaseClosing)
	GroupFlushing = uint8(phaseFlushing)
	GroupFinished = uint8(phaseFinished)
)

// Group returns the state of a group. Any goroutine may call it.
//
// A group of a topology that has failed is not quiet. Otherwise the other nodes could
// finish it without an error before they learn of the failure.
func (p *Pool) Group(i int) GroupState {
	g := p.groups[i]
	g.mu.Lock()
	turns := g.activity.Load()
	s := GroupState{Phase: uint8(g.phase), Turns: uint32(turns >> 32), Empty: len(g.units) == 0}
	waits := g.phase == phaseClosing || g.phase == phaseFlushing
	s.Quiet = waits && uint32(turns) == 0 && g.allEmpty() && g.activity.Load() == turns
	g.mu.Unlock()
	// Only now, because a call fails before the group goes on after it. And finish takes
	// the locks in the other order.
	if s.Quiet && p.ended.Load() {
		p.mu.Lock()
		s.Quiet = p.lifecycle.err == nil
		p.mu.Unlock()
	}
	return s
}

// Agree lets a group go on from a phase in which it is quiet on all nodes. Nodes calls
// it, once for each phase and group. Any goroutine may call it.
func (p *Pool) Agree(i int, phase uint8) {
	g := p.groups[i]
	g.mu.Lock()
	if uint8(g.phase) != phase {
		g.mu.Unlock()
		return
	}
	g.agreed = true
	g.mu.Unlock()
	g.enter()
	g.leave(nil)
}

// IsIdle reports whether nothing is left to do on this node until a message comes from
// another node: no message is queued, and no call runs. Nodes calls it while the node
// leaves the cluster, after the sources of this node have ended.
func (p *Pool) IsIdle() bool {
	if s := p.stepper; s != nil && s.inStep.Load() {
		return false // a Stepper does not count calls
	}
	before, idle := p.callCount()
	if !idle || p.guestsWait() || p.unpublished() { // before the queues: a message is published first and leaves the list then
		return false
	}
	for _, g := range p.groups {
		if !g.isIdle() {
			return false
		}
	}
	after, idle := p.callCount()
	return idle && before == after
}

// guestsWait reports whether messages of other nodes wait to be decoded.
func (p *Pool) guestsWait() bool {
	p.guestsMu.Lock()
	defer p.guestsMu.Unlock()
	for _, g := range p.guests {
		if g.waiting.Load() > 0 {
			return true
		}
	}
	return false
}

// unpublished reports whether an instance has sent messages that are not visible yet.
func (p *Pool) unpublished() bool {
	for _, proc := range p.processors {
		for _, u := range proc.units {
			if u.out.dirty.Load() != nil {
				return true
			}
		}
	}
	p.guestsMu.Lock()
	defer p.guestsMu.Unlock()
	for _, g := range p.guests {
		if g.unit.out.dirty.Load() != nil {
			return true
		}
	}
	return false
}

// isIdle reports whether no instance of the group holds a message or work, or waits for a
// reply.
func (g *group) isIdle() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.phase == phaseFinished || g.sources == 0 && g.holds == 0 && uint32(g.activity.Load()) == 0 && g.allEmpty()
}

// IsClosed reports whether no external sender accepts messages any more, and all accepted
// messages are in their queues. Nodes calls it before IsIdle, when a client ends.
func (p *Pool) IsClosed() bool {
	for _, x := range p.externals {
		if !x.isClosed() {
			return false
		}
	}
	return true
}

// callCount is a number that changes with each call of a handler. It returns false if a
// call runs.
func (p *Pool) callCount() (n uint64, idle bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range slices.Concat(p.workers, p.solos) {
		state := w.state.Load()
		if state&1 != 0 {
			return 0, false
		}
		n += state
	}
	return n, true
}

// newNodes calls Spec.Cluster. Without the name of a node it returns nil, and the whole
// topology runs in this process.
func (p *Pool) newNodes() error {
	if p.options.nodes != nil {
		p.useNodes(p.options.nodes)
		return nil
	}
	if p.spec.Cluster == nil {
		return nil
	}
	s := p.options.node
	s.Logger = p.log()
	nodes, err := p.spec.Cluster(s)
	if err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	if nodes != nil {
		p.useNodes(nodes)
	}
	return nil
}

// useNodes connects the pool with other nodes. It keeps all groups open until schedule,
// because a group may get sources of messages when Place makes its instances.
func (p *Pool) useNodes(nodes Nodes) {
	p.nodes = nodes
	for _, g := range p.groups {
		g.openInputs++
	}
}

// Node makes this process the node with a name of the topology's cluster. Without a name,
// the process runs the whole topology. Environment: TOPOGEN_NODE.
func Node(name string) Option {
	return func(o *options) error { o.node.Name = name; return nil }
}

// NodeAddress sets the host and port where the node listens, in place of the address in
// the topology file. Environment: TOPOGEN_ADDRESS.
func NodeAddress(address string) Option {
	return func(o *options) error { o.node.Address = address; return nil }
}

// NodeDir sets the folder for what the node must remember. Environment: TOPOGEN_DIR.
func NodeDir(dir string) Option {
	return func(o *options) error { o.node.Dir = dir; return nil }
}

// UseNodes sets Nodes in place of the Nodes that Spec.Cluster makes. Tests of generated code
// connect the nodes of one process with it.
func UseNodes(nodes Nodes) Option {
	return func(o *options) error { o.nodes = nodes; return nil }
}

// NodeTransport connects the node with the others through t, a transport.Transport, in
// place of gRPC. The caller closes it after Run. Tests put faults between nodes with it.
func NodeTransport(t any) Option {
	return func(o *options) error { o.node.Transport = t; return nil }
}

// Client makes this process a client of the topology's cluster. It runs no instances, and
// does not open the error store. config is a *cluster.ClientConfig.
func Client(config any) Option {
	return func(o *options) error { o.node.Client, o.errors = config, nil; return nil }
}

// NodeRoles sets the roles of the node. Environment: TOPOGEN_ROLES, separated by commas.
func NodeRoles(roles ...string) Option {
	return func(o *options) error { o.node.Roles = roles; return nil }
}

// Processor is the index of the unit's processor, for the links of a guest.
func (u *Unit) Processor() int { return u.proc.index }
