package cluster

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/topogen/topogen/runtime/cluster/session"
	"github.com/topogen/topogen/runtime/internal/fields"
	"github.com/topogen/topogen/runtime/piper/border"
)

// nodePeer is another node. Only nodes have instances, so only they get messages of pairs.
type nodePeer struct {
	peer
	silent     bool          // it does not answer, whatever the failure detector says
	heard      bool          // a frame has arrived since the last look
	silentAt   time.Duration // when the last frame had arrived, or nothing was to be acknowledged; 0: no look yet
	listenedAt time.Duration // the last look
	waitedFor  bool          // this node drains, and waits no longer for the node: it drops messages at once
	draining   bool          // the node drains its queues and stops
	heldBack   []bool        // by group: messages wait, because the node drains and refuses them; nil: for none
	toldFull   []bool        // by group: what tellFull has told it; nil: nothing
	saidFull   []bool        // by group: it is full there; nil: none is
	finished   bool          // it knows that all groups have finished
	ended      bool          // the failure detector says that it has ended in order
	noRoom     string        // why the node has no room for this client; "": it has, or it is not known
	boot       uint64        // of its process in the address table; 0: none, as far as the core has seen
	forgotten  bool          // it was removed from the address table

	own peerRefusals

	kept    uint64 // messages of all pairs that are not settled
	dropped uint64 // messages of all pairs that were dropped

	out     []*outPair // by lane, from firstLane
	waiting []*outPair // whose messages wait because the node does not take them now
}

// newPeer makes a node that the core does not know.
func (c *core) newPeer(name string) (*nodePeer, error) {
	p := new(nodePeer)
	common, err := newPeer(c, p, session.Config{
		Plan: c.common, Peer: name, Boot: c.boot, ReuseFrames: c.reuseFrames,
		Accept: func(boot uint64) bool { return c.role.accepts(name, boot) },
	})
	if err != nil {
		return nil, err
	}
	p.peer = common
	p.guests = c.guests.take(p)
	p.pairs = p.guests.pairs
	if c.places != nil { // a client learns rarely which nodes there are
		p.boot, _ = c.places.Boot(name)
	}
	c.peers[name] = p
	c.add(&p.peer)
	return p, nil
}

// newPair makes the sending end of a pair to this node.
func (p *nodePeer) newPair(names border.Pair, to settler, o *border.Outlet) *outPair {
	pair := &outPair{Pair: names, to: to, outlet: o, peer: p, lane: firstLane + uint64(len(p.out))}
	p.out = append(p.out, pair)
	return pair
}

// takes reports whether messages can be given to the session now, unless the node refuses
// those of their group.
func (p *nodePeer) takes() bool { return !p.isLost() && !p.left }

// accepts reports whether messages for a processor can be given to the session now. Those
// that a draining node refuses wait. Only other draining nodes still send them, so that nodes
// that are stopped together can finish.
func (p *nodePeer) accepts(processor int) bool {
	return p.takes() && (p.heldBack == nil || p.core.together || !p.heldBack[p.core.pool.GroupOf(processor)])
}

// isLost reports whether the node cannot be reached, or was not found.
func (p *nodePeer) isLost() bool { return !p.found || !p.reachable || p.silent }

// noRoomWait is how long messages wait for a node that has too many clients. A client that
// ends makes room within a second. To wait longer would only hide the limit.
const noRoomWait = 2 * time.Second

// patience is how long messages wait for the node while it cannot be reached.
func (p *nodePeer) patience() time.Duration {
	if p.noRoom != "" {
		return min(noRoomWait, p.core.config.Retry.Timeout)
	}
	return p.core.config.Retry.Timeout
}

// unreachable is why messages to the node are dropped.
func (p *nodePeer) unreachable() error {
	if p.noRoom != "" {
		return fmt.Errorf("%w: %s refuses this client: %s", ErrUnreachable, p.name, p.noRoom)
	}
	return fmt.Errorf("%w: %s, for %v", ErrUnreachable, p.name, p.core.config.Retry.Timeout)
}

// listen notes that the node is silent if it has acknowledged nothing for retry.timeout. A
// failure detector that has never heard of the node does not report it. A node that
// handles a message for long has nothing to say. So after half of the time without a frame
// it gets a message that it must acknowledge.
func (p *nodePeer) listen(now time.Duration) {
	timeout := p.core.config.Retry.Timeout
	pending := p.session.Stats().Pending > 0
	paused := now-p.listenedAt >= max(timeout/2, pauseMin)
	p.listenedAt = now
	switch quiet := now - p.silentAt; {
	case p.heard || p.silentAt == 0 || !pending && p.kept == 0:
		p.silentAt, p.heard = now, false
	case p.isLost():
	case !pending && quiet >= timeout/2:
		p.silentAt = now - timeout/2 // so it has the other half to answer, however late this look is
		p.send(laneAnswers|firstLane, []byte{controlConfirm})
	case pending && quiet >= timeout && paused: // this process was paused, and reads what the node has sent only now
		p.silentAt = now - timeout/2
	case pending && quiet >= timeout:
		p.silent, p.lostAt = true, p.silentAt
		p.releasePlaces()
	}
}

// pauseMin is how long the core, which looks every expireEvery while it keeps messages, must
// not have looked if the process was paused.
const pauseMin = 5 * expireEvery

// lookAt returns when listen and expire must look at the node, although nothing happens.
func (p *nodePeer) lookAt() (at time.Duration, due bool) {
	if at = p.core.expireAt; !p.isLost() && len(p.waiting) == 0 && len(p.core.returned) == 0 {
		at = max(at, p.silentAt+p.core.config.Retry.Timeout/2)
	}
	return at, p.kept > 0 || len(p.waiting) > 0
}

// hasLeft reports whether the node has left. A node that drains and cannot be reached any
// more counts as such after a while, because its last message may be lost.
func (p *nodePeer) hasLeft(now time.Duration) bool {
	return p.left || p.draining && p.isLost() && now-p.lostAt >= p.core.config.Retry.Timeout
}

func (p *nodePeer) detected(a alive) { p.ended, p.noRoom = a.left, a.noRoom }

func (p *nodePeer) connected(reachable bool) {
	if reachable {
		p.resume()
	} else {
		p.releasePlaces()
	}
}

// isHeard notes a sign of life of the node.
func (p *nodePeer) isHeard() {
	if p.heard = true; p.silent {
		p.silent = false
		p.resume()
	}
}

func (p *nodePeer) replaced(reason string) { p.core.role.refusedBy(p, reason) }

func (p *nodePeer) checkPair(border.Pair) error { return nil } // the pool checks the receiver

func (p *nodePeer) opened(in *inPair) { in.arrivals.SetNode(p.name) }

func (p *nodePeer) returns() (most, queued int) { return pairsMax, p.session.Stats().QueuedMessages }

// awaits reports whether a node that can be reached has not received everything. At the end
// of the topology a node also waits until the others have finished, whether they can be reached or not: they
// read the end in the address table, which may need this node for a majority. A node that has said that it leaves
// needs nothing; failure detection does not report its end if it has never heard of it.
func (p *nodePeer) awaits() bool {
	return !p.ended && (p.core.finished && !p.finished || p.reachable && (p.owes() || p.session.Stats().AckPending))
}

// resume sends the messages of pairs that have waited.
func (p *nodePeer) resume() {
	if !p.takes() {
		return
	}
	list := p.waiting
	p.waiting = nil
	for _, pair := range list {
		pair.waiting = false
		pair.pump()
	}
}

// releasePlaces gives the places of a node that cannot be reached to other nodes.
func (p *nodePeer) releasePlaces() {
	for _, pair := range p.out {
		if e, ok := pair.to.(*castEnd); ok {
			e.lose()
		}
	}
}

// expire drops messages that have waited too long for the node.
func (p *nodePeer) expire(now time.Duration) {
	c, timeout := p.core, p.patience()
	p.changed = true // its dueAt depends on expireAt
	p.listen(now)
	p.waitedFor = false
	if p.takes() && p.heldBack == nil || now-p.lostAt < timeout && !p.draining {
		return
	}
	before := now - timeout
	if c.draining && (p.hasLeft(now) || now-c.drainAt >= timeout) && now-p.lostAt >= timeout {
		p.waitedFor, before = true, now // otherwise this node would wait again for each message that it still sends
	}
	why := p.unreachable()
	for _, pair := range p.out {
		if p.takes() && (pair.handed > 0 || p.accepts(pair.To)) {
			continue // the node handles what it has accepted
		}
		pair.expire(before, why)
	}
}

// drains handles the control message of a node that drains.
func (p *nodePeer) drains(r *fields.Reader) error {
	refused, err := readGroups(r, p.core.pool.Groups())
	if err != nil {
		return err
	}
	p.draining, p.heldBack = true, refused
	p.resume()
	return nil
}

func (p *nodePeer) refusals() *peerRefusals { return &p.own }

func (p *nodePeer) refusedFrame(err error) {
	p.logRarely(&p.own.badFrames, slog.LevelWarn, "topogen: a frame of another node was refused", slog.Any("error", err))
}

func (p *nodePeer) refused(err error) {
	p.logRarely(&p.own.badMessages, slog.LevelError, "topogen: a message of another node was refused", slog.Any("error", err))
}
