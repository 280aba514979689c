package cluster

import (
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/topogen/topogen/runtime/cluster/session"
	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/piper/border"
)

var (
	// ErrNodeFailed: a handler on another node has returned an error, which ends the
	// topology on all nodes.
	ErrNodeFailed = errors.New("cluster: the topology has failed on another node")
	// ErrUnreachable: a node could not be reached for longer than retry.timeout, so a
	// message to it was dropped, or a call to it has failed.
	ErrUnreachable = errors.New("cluster: the node cannot be reached")
)

// core decides what a process does in the sessions with the nodes: which messages it sends, keeps and
// drops. Its role decides the rest: nodeCore is that of a node, and clientCore that of a client. It has no
// goroutine, clock or network. The caller passes the time, and the events since the last call, to step.
type core struct {
	role   role
	config *Config
	node   string
	boot   uint64
	rand   *rand.Rand
	log    *slog.Logger
	pool   pool
	places places
	emit   func(to string, frame []byte) // sends a frame; it may be lost
	common string                        // what the process and the nodes must have in common
	stale  func()                        // called when a node has returned a pair; may be nil

	now         time.Duration
	peers       map[string]*nodePeer
	ordered     []*peer            // the nodes and the clients by name, so that the same calls always have the same effects
	returned    []*outPair         // pairs that other nodes have returned; their instances are looked up again
	reuseFrames bool               // the transport copies each frame before the other node receives it
	deliveries  []session.Delivery // used again in each call of session.Receive
	buffers     session.Buffers    // of all sessions

	guests   nodeGuests
	quietAt  time.Duration // since when no messages were sent or received; a node that drains is also idle since then
	draining bool          // this process drains its queues and stops
	drainAt  time.Duration
	lookAt   time.Duration // when a process that drains looks again whether it may leave
	together bool          // it may end together with the nodes that drain, so it sends what they refuse
	ended    bool          // Run returns
	endedAt  time.Duration // when ended became true
	left     bool          // it has stopped while others go on
	finished bool          // Run returns because all groups have finished
	failed   error
	flushed  chan struct{} // see happened
	expireAt time.Duration

	window  int // of each session; 0: the usual one
	pairMax int // messages of a pair that wait for their handlers; 0: border.Arrivals.Limit
}

// role is the part of the core that differs between nodes and clients. Its methods take values: a pointer to a local
// variable would allocate memory for each step and message.
type role interface {
	began()                                                 // the core has a pool now
	accepts(name string, boot uint64) bool                  // whether a process may be the next one of a node
	sender(name string, alive bool) *peer                   // the node or the client that has sent something or can be reached; nil: it is ignored
	handleOwn(h *happened)                                  // what has happened to this kind of process only
	membersChanged()                                        // nodes have joined or left, or can be reached again
	peerFound(p *peer)                                      // a process of a node or of a client was found
	peerRestarted(name string)                              // the process of a node or of a client has ended
	forgottenBy(p *nodePeer, e session.PeerRestarted) error // why messages are lost that a node has got in its former session; nil: they are not
	refusedBy(p *nodePeer, reason string)                   // a node has another process in the place of this one
	processOf(p *nodePeer, boot uint64) uint64              // the boot id in the session with a process of the address table
	control(p *nodePeer, m []byte) error                    // handles a message about the end of the topology
	noPlace(f *forward, name string)                        // no other node has the instance that a message is for
	doubt(processor, chunks int)                            // counts chunks for a processor that were dropped and may still be handled
	drainBegan()                                            // this process is stopped
	agree(quiet []int, results []proposed)                  // how far the groups of processors are
	forgetClients()                                         // is called with core.expire
	leave(gone []string)                                    // ends this process, if it drains and has nothing left to do; drops nodes that are gone
	dueAt() time.Duration                                   // when leave must be called, although nothing happens
	end(result error)                                       // Run returns
	coordinator() string                                    // the node that decides when groups finish; "" if it is not known
}

// pool is what the core uses of a *border.Border.
type pool interface {
	Arrivals(from border.GuestKey, to, instance int) (*border.Arrivals, error)
	Agree(group int, phase uint8)
	Group(i int) piper.GroupState
	Groups() int
	GroupOf(processor int) int
	IsIdle() bool
	Needed(busy []bool) []bool
	IsClosed() bool
	StopTimers()
	IsFull(group int) (full, hadRoom bool)
	HoldBack(group int, hold bool)
	RefuseLate()
	Fail(err error)
	Leave()
}

// places says where instances run and which nodes there are.
type places interface {
	// Node returns the node of an instance.
	Node(processor, instance int) (name string, ok bool)
	// Members returns the nodes that take part in the topology, by name: nodes that have
	// joined and have not left, and nodes that must run instances. The caller must not change
	// the list.
	Members() []string
	// Boot returns the boot id of a node in the address table, and false if the table does not
	// have the node, or says that it has left.
	Boot(name string) (boot uint64, known bool)
	// End returns how far the nodes have agreed about the end; nil if they have agreed about
	// nothing. It is another pointer after each change.
	End() *table.End
}

const (
	expireEvery = 100 * time.Millisecond // resolution of retry.timeout
	closeEvery  = 5 * time.Millisecond   // how often a client that is closed looks whether all messages are settled
)

func newCore(config *Config, node string, boot uint64, random *rand.Rand, log *slog.Logger) *core {
	return &core{config: config, node: node, boot: boot, rand: random, log: log, common: config.Plan, peers: map[string]*nodePeer{}}
}

// begin connects the core with the pool.
func (c *core) begin(p pool, where places) {
	c.pool, c.places = p, where
	c.role.began()
}

// step handles what has happened until now, and sends what is due.
func (c *core) step(now time.Duration, h *happened) {
	c.now = now
	c.handle(h)
	if h.members || len(h.alive) > 0 {
		c.role.membersChanged()
	}
	if h.stopping && !c.draining { // before the groups that are quiet because of it are reported
		c.beginDrain()
	}
	c.role.agree(h.quiet, h.proposed)
	c.stop(h)
	c.lookUpReturned(now, h.members)
	c.expire(now)
	c.role.leave(h.gone)
	for _, p := range c.ordered {
		if p.changed || now >= p.dueAt { // there may be many others
			p.transmit(now)
		}
	}
	for _, answer := range h.views {
		answer <- c.view()
	}
	if c.flushed != nil && c.hasFlushed() {
		close(c.flushed)
		c.flushed = nil
	}
}

// handle handles what failure detection, the pool and other nodes have said.
func (c *core) handle(h *happened) {
	for _, a := range h.alive {
		if p := c.role.sender(a.node, a.alive); p != nil {
			p.setReachable(c.now, a.alive)
			p.remote.detected(a)
			p.changed = true
		}
	}
	c.role.handleOwn(h)
	for i := range h.forwards {
		c.forward(&h.forwards[i])
	}
	for i := range h.replies {
		h.replies[i].in.peer.sendReply(&h.replies[i])
	}
	for _, in := range h.handled {
		in.peer.confirm(in)
	}
	for _, f := range h.frames {
		if p := c.role.sender(f.from, false); p != nil {
			p.remote.receive(c.now, f.data)
		}
		if f.taken != nil {
			<-f.taken
		}
	}
}

// stop tells the other nodes how this node has ended.
func (c *core) stop(h *happened) {
	if !h.ended {
		return
	}
	c.ended, c.endedAt, c.flushed = true, c.now, h.flushed
	c.role.end(h.result)
	for _, p := range c.ordered {
		p.changed = true // confirmations wait no longer
		p.reportRefusals()
	}
}

// hasFlushed reports whether all nodes that can be reached have received everything. At the end
// of the topology a node also waits until the others have finished, whether they can be reached or not: they
// read the end in the address table, which may need this node for a majority. A node that has said that it leaves
// needs nothing; failure detection does not report its end if it has never heard of it.
func (c *core) hasFlushed() bool {
	return !slices.ContainsFunc(c.ordered, func(p *peer) bool { return p.found && !p.left && p.remote.awaits() })
}

// next returns the time at which step must be called, even if nothing has happened.
func (c *core) next() (at time.Duration, ok bool) {
	at = c.role.dueAt()
	for _, p := range c.ordered {
		if p.changed { // since the last step
			return c.now, true
		}
		at = min(at, p.dueAt)
	}
	if c.draining && !c.left && !c.ended {
		at = min(at, max(c.lookAt, c.now+closeEvery))
	}
	return at, at != never
}

// never is a time that does not come.
const never = time.Duration(1<<63 - 1)

// peer returns another node, which is new if the core does not know it.
func (c *core) peer(name string) *nodePeer {
	if p := c.peers[name]; p != nil || name == c.node {
		return p
	}
	p, err := c.newPeer(name)
	if err != nil {
		c.refusePeer(name, err)
		return nil
	}
	return p
}

// refusePeer logs that a node or a client was refused because its name is not valid.
func (c *core) refusePeer(name string, err error) {
	c.log.Error("topogen: a node was refused", slog.String("node", name), slog.Any("error", err))
}

// nodes are the other nodes by name.
func (c *core) nodes() iter.Seq[*nodePeer] {
	return func(yield func(*nodePeer) bool) {
		for _, p := range c.ordered {
			if n, ok := p.remote.(*nodePeer); ok && !yield(n) {
				return
			}
		}
	}
}

// add adds a node or a client to the list.
func (c *core) add(p *peer) {
	at, _ := slices.BinarySearchFunc(c.ordered, p.name, func(p *peer, name string) int { return strings.Compare(p.name, name) })
	c.ordered = slices.Insert(c.ordered, at, p)
}

// forward passes messages to the node of their receiver, or to all other nodes.
func (c *core) forward(f *forward) {
	c.quietAt = c.now
	switch to := f.outlet.State.(type) {
	case *outPair:
		to.forward(c.now, f.chunk)
	case *cast:
		to.forward(c, f)
	default:
		if trunk := f.outlet.Trunk(); trunk.ToInstance == border.OnAllOthers {
			if trunk.State == nil {
				trunk.State = &cast{outlet: trunk}
			}
			f.outlet.State = trunk.State
		} else {
			name, ok := c.places.Node(f.outlet.To, f.outlet.ToInstance)
			p := c.peer(name)
			if !ok || p == nil {
				c.role.noPlace(f, name)
				return
			}
			f.outlet.State = p.newPair(f.outlet.Pair, f.outlet, f.outlet)
		}
		c.forward(f)
	}
}

// beginDrain is called when this process is stopped.
func (c *core) beginDrain() {
	c.draining, c.drainAt, c.quietAt = true, c.now, c.now
	c.role.drainBegan()
	for p := range c.nodes() {
		p.resume() // another draining node accepts everything from this node
	}
}

// noPlace ends the topology because the address table has no node for an instance.
func (c *core) noPlace(f *forward, _ string) {
	c.fail(fmt.Errorf("cluster: the address table has no node for instance %d of %s", f.outlet.ToInstance, c.config.Processors[f.outlet.To].Name))
}

// fail ends the topology on this node.
func (c *core) fail(err error) {
	if c.failed == nil {
		c.failed = err
		c.pool.Fail(err)
	}
}

// firstLine is the text of an error without the stack that may follow it.
func firstLine(err error) string {
	const textMax = 4 << 10
	text := fmt.Sprint(err) // its method Error may panic
	for i, r := range text {
		if r == '\n' || i >= textMax {
			return text[:i]
		}
	}
	return text
}

// sendAll sends a control message to all nodes.
func (c *core) sendAll(lane uint64, m []byte) {
	for _, p := range c.ordered {
		p.send(lane, slices.Clone(m))
	}
}

// followTable adapts the peers to the address table.
func (c *core) followTable() {
	for _, p := range slices.Collect(c.nodes()) { // follow may add a node
		p.followTable()
	}
}

// participants are the nodes that take part in the topology.
func (c *core) participants() []string { return c.places.Members() }

// expire drops messages that have waited too long for a node.
func (c *core) expire(now time.Duration) {
	if now < c.expireAt {
		return
	}
	c.expireAt = now + expireEvery
	c.role.forgetClients()
	for p := range c.nodes() {
		p.expire(now)
	}
	c.expireReturned(now)
}

// leaveOthers ends this process while others go on.
func (c *core) leaveOthers() {
	c.left = true
	c.sendAll(laneControl, []byte{controlLeft})
	c.pool.Leave()
}
