package cluster

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/topogen/topogen/runtime/cluster/session"
	"github.com/topogen/topogen/runtime/internal/bug"
	"github.com/topogen/topogen/runtime/piper"
)

var (
	// ErrNodeFailed: a handler on another node has returned an error, which ends the
	// topology on all nodes.
	ErrNodeFailed = errors.New("cluster: the topology has failed on another node")
	// ErrUnreachable: a node could not be reached for longer than retry.timeout, so a
	// message to it was dropped, or a call to it has failed.
	ErrUnreachable = errors.New("cluster: the node cannot be reached")
)

// core decides what a node does: which messages it sends, keeps and drops, and when the
// groups of the topology finish. It has no goroutine, clock or network. The caller passes
// the time, and what has happened in the meantime, to step.
type core struct {
	config *Config
	node   string
	boot   uint64
	rand   *rand.Rand
	log    *slog.Logger
	pool   pool
	places places
	emit   func(to string, frame []byte) // sends a frame; it may be lost

	now         time.Duration
	peers       map[string]*peer
	ordered     []*peer // the same by name, so that the same calls always have the same effects
	groups      *agreement
	reuseFrames bool               // the transport copies each frame before the other node receives it
	deliveries  []session.Delivery // used again in each call of session.Receive

	client   bool   // this process is a client: it takes no part in anything but the messages that it sends
	home     string // of a client, see lookup
	clients  clientPeers
	draining bool // this node drains its queues and stops
	drainAt  time.Duration
	idleAt   time.Duration
	lastIdle bool
	lookAt   time.Duration // when mayLeave looks again whether the node is idle
	ended    bool          // Run returns
	left     bool          // it has stopped while others go on
	decided  bool          // it has told the others that a group may go on
	failed   error
	flushed  chan struct{} // see happened
	leader   string        // the coordinator that has the reports of this node
	expireAt time.Duration

	queueMax   int // messages of pairs in the queue of each session; 0: as many as it takes
	leaveAfter time.Duration
}

// pool is what the core uses of a *piper.Pool.
type pool interface {
	Arrivals(from piper.GuestKey, to, instance int) (*piper.Arrivals, error)
	Agree(group int, phase uint8)
	Group(i int) piper.GroupState
	Groups() int
	GroupOf(processor int) int
	IsIdle() bool
	IsClosed() bool
	StopTimers()
	Fail(err error)
	Leave()
}

// places says where instances run and which nodes there are.
type places interface {
	// Node returns the node of an instance.
	Node(processor, instance int) (name string, ok bool)
	// Members returns the nodes that take part in the topology, by name: those that have
	// joined and have not left, and those that must run instances.
	Members() []string
}

// happened is what has happened since the last step.
type happened struct {
	frames     []frame
	frameBytes int
	forwards   []forward
	replies    []reply
	handled    []*inPair
	quiet      []int
	alive      []alive
	members    bool // nodes have joined or left
	stopping   bool // the context of Run has ended
	ended      bool // Run returns
	result     error
	flushed    chan struct{} // closed when the other nodes have received everything
	views      []chan<- coreView
}

type frame struct {
	from  string
	data  []byte
	taken chan struct{} // of a client: the core receives from it, so that the client may send another frame; nil for nodes
}

type forward struct {
	outlet *piper.Outlet
	chunk  piper.Chunk
}

// alive is what the failure detector says about a node.
type alive struct {
	node  string
	alive bool
	left  bool // it has said that it ends

	passedOn bool // a client that is connected only to other nodes
}

const (
	expireEvery = 100 * time.Millisecond // resolution of retry.timeout
	closeEvery  = 5 * time.Millisecond   // how often a client that is closed looks whether all messages are settled
	leaveAfter  = 2 * time.Second        // a node leaves after it was idle for so long: when all nodes are stopped, the signals may be apart
)

func newCore(config *Config, node string, boot uint64, random *rand.Rand, log *slog.Logger) *core {
	return &core{config: config, node: node, boot: boot, rand: random, log: log, peers: map[string]*peer{}, leaveAfter: leaveAfter}
}

// begin connects the core with the pool.
func (c *core) begin(p pool, where places) {
	c.pool, c.places = p, where
	c.groups = newAgreement(c, p.Groups())
}

// step handles what has happened until now, and sends what is due.
func (c *core) step(now time.Duration, h *happened) {
	c.now = now
	for _, a := range h.alive {
		p := c.peers[a.node]
		if p == nil && (a.alive || !isClient(a.node)) {
			p = c.peer(a.node)
		}
		if p != nil {
			p.setReachable(now, a.alive)
			p.ended, p.passedOn, p.changed = a.left, a.passedOn, true
		}
	}
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
		if p := c.peers[f.from]; p != nil {
			p.receive(now, f.data)
		} else if !isClient(f.from) { // a frame of a client may come after the client was forgotten
			if p := c.peer(f.from); p != nil {
				p.receive(now, f.data)
			}
		}
		if f.taken != nil {
			<-f.taken
		}
	}
	if h.members || len(h.alive) > 0 {
		c.membersChanged()
	}
	if !c.client {
		for _, group := range h.quiet {
			c.groups.quiet(group)
		}
		c.groups.tellOwed()
	}
	if h.stopping && !c.draining {
		c.draining, c.drainAt = true, now
		if !c.client && !bug.On(bug.DrainingSilent) {
			c.sendAll(laneControl, []byte{controlDraining})
		}
		c.drainingChanged()
	}
	if h.ended && h.result != nil && !c.client && !errors.Is(h.result, ErrNodeFailed) {
		c.sendAll(laneControl, append([]byte{controlFailed}, firstLine(h.result)...))
	}
	if h.ended {
		c.ended, c.flushed = true, h.flushed
		for _, p := range c.ordered {
			p.changed = true // confirmations wait no longer
		}
	}
	c.expire(now)
	c.mayLeave(now)
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

// hasFlushed reports whether all nodes that can be reached have received everything. The
// node that has told others how groups go on also waits for those that cannot be reached:
// no other node would tell them.
func (c *core) hasFlushed() bool {
	for _, p := range c.ordered {
		v := p.session.Stats()
		switch {
		case !p.found || p.ended, p.slot != nil && !p.reachable:
		case (v.Pending > 0 || len(p.answers) > 0 || len(p.unconfirmed) > 0) && (p.reachable || c.decided && !bug.On(bug.FarewellShort) && !c.left && c.failed == nil), v.AckPending && p.reachable:
			return false
		}
	}
	return true
}

// next returns the time at which step must be called, even if nothing has happened.
func (c *core) next() (at time.Duration, ok bool) {
	at = never
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
func (c *core) peer(name string) *peer {
	if p := c.peers[name]; p != nil || name == c.node {
		return p
	}
	p, err := c.newPeer(name)
	if err != nil {
		c.log.Error("topogen: a node was refused", slog.String("node", name), slog.Any("error", err))
		return nil
	}
	return p
}

// forward passes messages to the node of their receiver, or to all other nodes.
func (c *core) forward(f *forward) {
	switch to := f.outlet.State.(type) {
	case *outPair:
		to.forward(c.now, f.chunk)
	case *cast:
		to.forward(c, f)
	default:
		if trunk := f.outlet.Trunk(); trunk.ToInstance == piper.OnAllOthers {
			if trunk.State == nil {
				trunk.State = &cast{outlet: trunk}
			}
			f.outlet.State = trunk.State
		} else {
			name, ok := c.places.Node(f.outlet.To, f.outlet.ToInstance)
			p := c.peer(name)
			if !ok || p == nil {
				c.fail(fmt.Errorf("cluster: the address table has no node for instance %d of %s", f.outlet.ToInstance, c.config.Processors[f.outlet.To].Name))
				return
			}
			f.outlet.State = p.newPair(f.outlet.Pair, f.outlet, f.outlet)
		}
		c.forward(f)
	}
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
	text := err.Error()
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

// peerFound is called when a process of a node was found.
func (c *core) peerFound(p *peer) {
	if c.draining && !c.client && !bug.On(bug.DrainingSilent) {
		p.send(laneControl, []byte{controlDraining})
	}
	if c.failed == nil && !c.client && p.name == c.coordinator() {
		c.groups.tellAll()
	}
}

// participants are the nodes that take part in the topology.
func (c *core) participants() []string { return c.places.Members() }

// coordinator is the node that decides when groups finish: the first one by name.
func (c *core) coordinator() string {
	for _, name := range c.participants() {
		if p := c.peers[name]; name == c.node || p != nil && p.reachable {
			return name
		}
	}
	return c.node
}

// membersChanged is called when nodes have joined or left, or can be reached again.
func (c *core) membersChanged() {
	if c.client {
		return
	}
	for _, name := range c.participants() {
		c.peer(name)
	}
	if now := c.coordinator(); now != c.leader {
		c.leader = now
		if bug.On(bug.StatusLost) {
			return
		}
		c.groups.tellAll()
	}
	c.groups.membersChanged()
}

// allDrain reports whether all nodes drain and none of them has left. Then they end
// together, when the groups have finished.
func (c *core) allDrain(now time.Duration) bool {
	if !c.draining {
		return false
	}
	for _, name := range c.participants() {
		if name == c.node {
			continue
		}
		if p := c.peers[name]; p == nil || !p.draining || p.hasLeft(now) {
			return false
		}
	}
	return true
}

// drainingChanged sends what has waited for another draining node.
func (c *core) drainingChanged() {
	for _, p := range c.ordered {
		p.resume()
	}
}

// expire drops messages that have waited too long for a node.
func (c *core) expire(now time.Duration) {
	if now < c.expireAt {
		return
	}
	c.expireAt = now + expireEvery
	c.forgetClients(now)
	timeout := c.config.Retry.Timeout
	for _, p := range c.ordered {
		p.changed = true // its dueAt depends on expireAt
		p.listen(now)
		p.waitedFor = false
		if p.takes() || now-p.lostAt < timeout && !p.draining {
			continue
		}
		before := now - timeout
		if c.draining && (p.hasLeft(now) || now-c.drainAt >= timeout) && now-p.lostAt >= timeout {
			p.waitedFor, before = true, now // otherwise this node would wait again for each message that it still sends
		}
		why := p.unreachable()
		for _, pair := range p.out {
			pair.expire(before, why)
		}
	}
}

// mayLeave ends a node that drains while others go on, after it has handled everything
// that it has accepted, and others have handled everything that it has sent. Only the core
// passes on what arrives, so nothing arrives between the last look and the end.
func (c *core) mayLeave(now time.Duration) {
	if !c.draining || c.left || c.ended || c.client && !c.pool.IsClosed() || !c.client && c.allDrain(now) {
		return
	}
	if now < c.lookAt {
		return
	}
	c.lookAt = now + expireEvery // not in each step, because IsIdle looks at all instances
	if c.client {
		c.lookAt = now + closeEvery
	}
	if now-c.drainAt >= c.leaveAfter { // the others would drain by now, too
		c.pool.StopTimers()
	}
	if idle := c.pool.IsIdle(); idle != c.lastIdle {
		c.lastIdle, c.idleAt = idle, now
	}
	if c.lastIdle && now-c.idleAt >= c.leaveAfter {
		c.left = true
		c.sendAll(laneControl, []byte{controlLeft})
		c.pool.Leave()
	}
}
