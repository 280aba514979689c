package cluster

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
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

// core decides what a node does: which messages it sends, keeps and drops, and when the
// groups of the topology finish. It has no goroutine, clock or network. The caller passes
// the time, and the events since the last call, to step.
type core struct {
	config *Config
	node   string
	boot   uint64
	rand   *rand.Rand
	log    *slog.Logger
	pool   pool
	places places
	emit   func(to string, frame []byte) // sends a frame; it may be lost

	propose func(p proposal) // runs a transaction, and posts its result; it does not wait

	now         time.Duration
	peers       map[string]*peer
	ordered     []*peer // the same by name, so that the same calls always have the same effects
	groups      *agreement
	returned    []*outPair         // pairs that other nodes have returned; their instances are looked up again
	reuseFrames bool               // the transport copies each frame before the other node receives it
	deliveries  []session.Delivery // used again in each call of session.Receive

	client   bool   // this process is a client: it takes no part in anything but the messages that it sends
	stale    func() // of a client: its copy of the address table may be out of date; may be nil
	clients  clientPeers
	drain    drain
	guests   nodeGuests
	draining bool // this node drains its queues and stops
	drainAt  time.Duration
	ended    bool          // Run returns
	endedAt  time.Duration // when ended became true
	left     bool          // it has stopped while others go on
	finished bool          // Run returns because all groups have finished
	failed   error
	flushed  chan struct{} // see happened
	leader   string        // the coordinator that has the reports of this node
	expireAt time.Duration

	queueMax   int // messages of pairs in the queue of each session; 0: as many as it takes
	pairMax    int // messages of a pair that wait for their handlers; 0: border.Arrivals.Limit
	leaveAfter time.Duration
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
	leaveAfter  = 2 * time.Second        // a busy node waits so long for the others to drain too: when all nodes are stopped, the signals may be apart
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
	c.handle(h)
	if h.members || len(h.alive) > 0 {
		c.membersChanged()
	}
	if h.stopping && !c.draining { // before the groups that are quiet because of it are reported
		c.beginDrain()
	}
	if !c.client {
		for _, group := range h.quiet {
			c.groups.quiet(group)
		}
		c.groups.tellOwed()
		for i := range h.proposed {
			c.groups.proposed(&h.proposed[i].proposal, h.proposed[i].applied)
		}
		c.groups.propose()
	}
	c.stop(h)
	c.lookUpReturned(now, h.members)
	c.expire(now)
	c.mayLeave(now)
	for _, name := range h.gone {
		c.drop(name)
	}
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
		p := c.sender(a.node)
		if p == nil && a.alive {
			p = c.peer(a.node)
		}
		if p != nil {
			p.setReachable(c.now, a.alive)
			p.ended, p.passedOn, p.noRoom, p.changed = a.left, a.passedOn, a.noRoom, true
		}
	}
	for _, name := range h.farewells {
		if p := c.sender(name); p != nil {
			p.finished, p.changed = true, true
		}
	}
	for i := range h.rooms {
		c.makeRoom(&h.rooms[i])
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
		if p := c.sender(f.from); p != nil {
			p.receive(c.now, f.data)
		}
		if f.taken != nil {
			<-f.taken
		}
	}
}

// sender returns another node, or a client that the core has not forgotten. A node that the
// address table does not have, or that has left, is not added: a frame of its process may come
// after the core has dropped it. A node that has just joined sends again.
func (c *core) sender(name string) *peer {
	p := c.peers[name]
	if p != nil || isClient(name) {
		return p
	}
	if _, takesPart := slices.BinarySearch(c.participants(), name); !takesPart && !c.client {
		return nil
	}
	return c.peer(name)
}

// stop tells the other nodes how this node has ended.
func (c *core) stop(h *happened) {
	if !h.ended {
		return
	}
	if c.endsTopology(h.result) {
		c.sendAll(laneControl, failure(fmt.Sprintf("node %s: %v", c.node, h.result)))
	}
	c.ended, c.endedAt, c.flushed = true, c.now, h.flushed
	if c.finished = !c.client && !c.left && c.failed == nil && hasFinished(c.pool); c.finished {
		c.sendAll(laneControl, []byte{controlFinished})
		c.pool.RefuseLate()
	}
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
	for _, p := range c.ordered {
		v := p.session.Stats()
		switch {
		case !p.found || p.ended || p.left, p.slot != nil && !p.reachable:
		case p.passedOn && c.now-c.endedAt >= farewellShort: // nothing tells that such a client has ended
		case c.finished && p.slot == nil && !p.finished, (v.Pending > 0 || len(p.answers) > 0 || len(p.unconfirmed) > 0 || v.AckPending) && p.reachable:
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
		at = min(at, max(c.drain.lookAt, c.now+closeEvery))
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
	c.drain.quietAt = c.now
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
			if c.client && name == c.node { // it has no instances: all nodes get the message along the link to all others
				f.outlet.Reaches(f.chunk.Messages, 0)
				f.outlet.Settle(f.chunk.Messages, nil)
				border.ReuseChunk(f.chunk.Data)
				return
			}
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

// failure is the message that the topology has failed. text names the node.
func failure(text string) []byte {
	return append([]byte{controlFailed}, firstLine(errors.New(text))...)
}

// passOnFailure tells the other nodes what one of them has said: that the topology has failed
// on a node. That node may not reach all of them, and it ends soon. They are told at once and not
// at the end of Run, because they end too, and then acknowledge nothing.
func (c *core) passOnFailure(from *peer, text string) {
	for _, p := range c.ordered {
		if p != from && p.slot == nil {
			p.send(laneControl, failure(text))
		}
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

// peerFound is called when a process of a node was found.
func (c *core) peerFound(p *peer) {
	if c.draining && !c.client {
		p.send(laneControl, c.drain.message())
	}
	if c.finished {
		p.send(laneControl, []byte{controlFinished})
	}
	c.groups.record.look = true
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
		c.releaseForgotten()
		return
	}
	for _, name := range c.participants() {
		c.peer(name)
	}
	c.releaseForgotten()
	if now := c.coordinator(); now != c.leader {
		c.leader = now
		c.groups.tellAll()
	}
	c.groups.membersChanged()
}
