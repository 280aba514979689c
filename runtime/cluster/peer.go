package cluster

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/topogen/topogen/runtime/cluster/session"
	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/piper/border"
)

// firstLane is the lane of the first pair. Lower lanes are for control messages.
const firstLane = session.ControlLanes

// peer is another node, as the core sees it.
type peer struct {
	core       *core
	name       string
	session    *session.Session
	found      bool          // a process of the node has answered
	reachable  bool          // as the failure detector says
	silent     bool          // it does not answer, whatever the failure detector says
	heard      bool          // a frame has arrived since the last look
	silentAt   time.Duration // when the last frame had arrived, or nothing was to be acknowledged; 0: no look yet
	listenedAt time.Duration // the last look
	lostAt     time.Duration // since when it cannot be reached, or was not found
	waitedFor  bool          // this node drains, and waits no longer for the node: it drops messages at once
	draining   bool          // the node drains its queues and stops
	heldBack   []bool        // by group: messages wait, because the node drains and refuses them; nil: for none
	left       bool          // it has stopped while others go on
	finished   bool          // it knows that all groups have finished
	ended      bool          // the failure detector says that it has ended in order
	noRoom     string        // why the node has no room for this client; "": it has, or it is not known
	boot       uint64        // of its process in the address table; 0: none, as far as the core has seen
	process    uint64        // boot id of the session; that of a client's session has another low half
	forgotten  bool          // it was removed from the address table

	guests   *guestSlot    // has the guests of the peer
	slot     *guestSlot    // of a client; nil for a node
	passedOn bool          // another node passes on the frames of the client
	heardAt  time.Duration // when the last frame has arrived

	owner string        // the certificate of a client
	own   *peerRefusals // of a node

	kept    uint64 // messages of all pairs that are not settled
	dropped uint64 // messages of all pairs that were dropped

	out      []*outPair // by lane, from firstLane
	waiting  []*outPair // whose messages wait because the node does not take them now, or the session is full
	answers  []answer   // that wait for room in the session
	full     bool       // the session has refused a message since the last refill
	in       map[uint64]*inPair
	pairs    map[border.Pair]*inPair // the same, in all sessions
	returned map[uint64]struct{}     // lanes of pairs that this node has returned

	unconfirmed []*inPair     // have handled messages whose confirmation was not sent
	confirmAt   time.Duration // when it is sent at the latest

	changed bool          // something has happened since transmit was called
	dueAt   time.Duration // when transmit must be called although nothing happens
}

func (c *core) newPeer(name string) (*peer, error) {
	boot := c.boot
	if isClient(name) {
		boot = c.bootForClient()
	}
	s, err := session.New(session.Config{
		Topology: c.config.Topology, Plan: c.inCommon(name), Node: c.node, Peer: name, Boot: boot,
		RetryMin: c.config.Retry.Min, RetryMax: c.config.Retry.Max, Rand: c.rand, ReuseFrames: c.reuseFrames && !isClient(name),
		Accept: func(boot uint64) bool { return c.accepts(name, boot) },
	})
	if err != nil {
		return nil, err
	}
	p := &peer{core: c, name: name, session: s, own: new(peerRefusals), reachable: true, changed: true, lostAt: c.now, in: map[uint64]*inPair{}}
	if isClient(name) {
		p.slot, p.owner = c.clients.take(p), c.clients.ownerOf(name)
		p.guests, p.heardAt = p.slot, c.now
	} else {
		p.guests = c.takeGuests(p)
	}
	p.pairs = p.guests.pairs
	if c.client && c.places != nil { // it learns rarely which nodes there are
		p.boot, _ = c.places.Boot(name)
	}
	c.peers[name] = p
	at, _ := slices.BinarySearchFunc(c.ordered, name, func(p *peer, name string) int { return strings.Compare(p.name, name) })
	c.ordered = slices.Insert(c.ordered, at, p)
	return p, nil
}

// takes reports whether messages can be given to the session now, unless the node refuses
// those of their group.
func (p *peer) takes() bool { return !p.isLost() && !p.left }

// accepts reports whether messages for a processor can be given to the session now. Those
// that a draining node refuses wait. Only other draining nodes still send them, so that nodes
// that are stopped together can finish.
func (p *peer) accepts(processor int) bool {
	return p.takes() && (p.heldBack == nil || p.core.draining && !p.core.client || !p.heldBack[p.core.pool.GroupOf(processor)])
}

// isLost reports whether the node cannot be reached, or was not found.
func (p *peer) isLost() bool { return !p.found || !p.reachable || p.silent }

// noRoomWait is how long messages wait for a node that has too many clients. A client that
// ends makes room within a second. To wait longer would only hide the limit.
const noRoomWait = 2 * time.Second

// patience is how long messages wait for the node while it cannot be reached.
func (p *peer) patience() time.Duration {
	if p.noRoom != "" {
		return min(noRoomWait, p.core.config.Retry.Timeout)
	}
	return p.core.config.Retry.Timeout
}

// unreachable is why messages to the node are dropped.
func (p *peer) unreachable() error {
	if p.noRoom != "" {
		return fmt.Errorf("%w: %s refuses this client: %s", ErrUnreachable, p.name, p.noRoom)
	}
	return fmt.Errorf("%w: %s, for %v", ErrUnreachable, p.name, p.core.config.Retry.Timeout)
}

// listen notes that the node is silent if it has acknowledged nothing for retry.timeout. A
// failure detector that has never heard of the node does not report it. A node that
// handles a message for long has nothing to say. So after half of the time without a frame
// it gets a message that it must acknowledge.
func (p *peer) listen(now time.Duration) {
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

// listenAt returns when listen and expire must look at the node, although nothing happens.
func (p *peer) listenAt() (at time.Duration, ok bool) {
	if at = p.core.expireAt; !p.isLost() && len(p.waiting) == 0 && len(p.core.returned) == 0 {
		at = max(at, p.silentAt+p.core.config.Retry.Timeout/2)
	}
	return at, p.kept > 0 || len(p.waiting) > 0
}

// hasLeft reports whether the node has left. A node that drains and cannot be reached any
// more counts as such after a while, because its last message may be lost.
func (p *peer) hasLeft(now time.Duration) bool {
	return p.left || p.draining && p.isLost() && now-p.lostAt >= p.core.config.Retry.Timeout
}

// send gives a control message to the session.
func (p *peer) send(lane uint64, m []byte) {
	p.changed = true
	err := p.session.Send(lane, m)
	if errors.Is(err, session.ErrUnreadEvents) {
		return // the messages are sent again when the event is handled
	}
	if err != nil {
		p.core.fail(fmt.Errorf("cluster: messages to node %s: %w", p.name, err))
	}
}

// setReachable records what the failure detector says.
func (p *peer) setReachable(now time.Duration, reachable bool) {
	if p.reachable == reachable {
		return
	}
	p.reachable = reachable
	p.session.Connected(now, reachable)
	if reachable {
		p.resume()
		return
	}
	if p.found {
		p.lostAt = now
	}
	p.releasePlaces()
}

// receive handles a frame of the session.
func (p *peer) receive(now time.Duration, frame []byte) {
	p.heardAt, p.changed = now, true
	if p.slot != nil && len(frame) == 0 {
		p.isHeard()
		return // the client says only that it is there, see keepRelays
	}
	messages, err := p.session.Receive(now, frame, p.core.deliveries[:0])
	if p.session.Heard() {
		defer p.isHeard()
	}
	for _, e := range p.session.Events() {
		p.event(e)
	}
	if err != nil {
		p.refusedFrame(err)
	}
	defer func() {
		clear(messages)
		p.core.deliveries = messages
	}()
	for _, m := range messages {
		if err := p.message(m.Lane, m.Message); err != nil {
			p.refused(err)
		}
	}
}

// event handles a change of the peer's process.
func (p *peer) event(e session.Event) {
	switch e := e.(type) {
	case session.PeerStarted:
		p.found, p.process = true, e.Boot
		p.core.peerFound(p)
		p.resume()
	case session.PeerRestarted:
		p.process = e.New
		p.restarted(p.forgottenBy(e))
		p.core.peerFound(p)
	case session.TwoProcesses:
		p.logRarely(&p.refusals().duplicates, slog.LevelError, twoProcesses)
	case session.Refused:
		r := &p.refusals().refusesPeer
		if e.ByPeer {
			r = &p.refusals().refusedByPeer
		}
		p.logRarely(r, slog.LevelError, "topogen: nodes do not accept each other", slog.Bool("by_peer", e.ByPeer), slog.String("reason", e.Text))
		if e.ByPeer && e.Reason == session.Replaced && p.slot == nil && !p.core.client {
			p.core.fail(&nodeError{p.core.node, fmt.Errorf("%w: node %s says: %s", table.ErrSuperseded, p.name, e.Text)})
		}
	}
}

// message handles a message of the session.
func (p *peer) message(lane uint64, m []byte) error {
	if len(m) == 0 {
		return errMalformed
	}
	if lane < firstLane {
		return p.control(m[0], &reader{b: m[1:]})
	}
	if lane&laneAnswers != 0 {
		return p.answered(m[0], &reader{b: m[1:]})
	}
	switch m[0] {
	case pairOpen:
		return p.open(lane, m[1:])
	case pairChunk, pairAgain:
		in := p.in[lane]
		_, away := p.returned[lane]
		switch {
		case in == nil && away:
			return nil // the sending node keeps them
		case in == nil:
			return fmt.Errorf("%w: messages of a pair that was not opened", errMalformed)
		case m[0] == pairChunk:
			return in.take(m[1:])
		}
		return in.again()
	}
	return fmt.Errorf("%w: kind %d", errMalformed, m[0])
}

// pairsMax bounds the pairs that a node may open.
const pairsMax = 1 << 22

// open begins a pair in this session.
func (p *peer) open(lane uint64, m []byte) error {
	pair, err := readOpen(m)
	if err != nil {
		return err
	}
	if err := p.checkPair(pair); err != nil {
		return err
	}
	in := p.pairs[pair]
	if p.in[lane] != nil || in != nil && p.in[in.lane] == in {
		return fmt.Errorf("%w: a pair or a lane is opened twice", errMalformed)
	}
	if in == nil {
		if len(p.pairs) >= pairsMax {
			return fmt.Errorf("cluster: node %s has opened %d pairs", p.name, len(p.pairs))
		}
		in = &inPair{peer: p}
		key := border.GuestKey{Node: p.guests.name, Processor: pair.From, Instance: pair.FromInstance}
		if in.arrivals, err = p.core.pool.Arrivals(key, pair.To, pair.ToInstance); errors.Is(err, border.ErrAway) {
			return p.giveBack(lane)
		} else if err != nil {
			return err
		}
		delete(p.returned, lane)
		in.arrivals.State = in
		if p.slot == nil {
			in.arrivals.SetNode(p.name)
		}
		if in.limit = in.arrivals.Limit; p.core.pairMax > 0 {
			in.limit = uint64(p.core.pairMax)
		}
		in.hurry = uint64(max(1, in.arrivals.Capacity/hurryPart))
		p.pairs[pair] = in
	}
	in.lane, in.base, in.told, in.excess = lane, in.put, 0, excessNone
	in.process++
	p.in[lane] = in
	return nil
}

// transmit sends everything that is due.
func (p *peer) transmit(now time.Duration) {
	p.flush()
	for more := true; more; more = p.refill() {
		for f := p.session.Frame(now); f != nil; f = p.session.Frame(now) {
			p.core.emit(p.name, f)
		}
	}
	p.changed, p.dueAt = false, p.nextAt()
}

// nextAt returns when the core must look at the node, although nothing happens.
func (p *peer) nextAt() time.Duration {
	at := never
	if t, due := p.session.Next(); due {
		at = t
	}
	if t, due := p.listenAt(); due {
		at = min(at, t)
	}
	if len(p.unconfirmed) > 0 && !p.full {
		at = min(at, p.confirmAt)
	}
	if p.slot != nil {
		if t, due := p.forgetAt(); due {
			at = min(at, max(t, p.core.expireAt))
		}
	}
	return at
}

// newPair makes the sending end of a pair to this node.
func (p *peer) newPair(names border.Pair, to settler, o *border.Outlet) *outPair {
	pair := &outPair{Pair: names, to: to, outlet: o, peer: p, lane: firstLane + uint64(len(p.out))}
	p.out = append(p.out, pair)
	return pair
}
