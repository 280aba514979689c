package cluster

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/topogen/topogen/runtime/cluster/session"
	"github.com/topogen/topogen/runtime/piper/border"
)

// firstLane is the lane of the first pair. Lower lanes are for control messages.
const firstLane = session.ControlLanes

// peer is the process at the other end of a session: what nodes and clients have in common. It receives
// the messages of pairs, and sends confirmations and replies.
type peer struct {
	core      *core
	remote    remote // the *nodePeer or *clientPeer that this is a part of
	name      string
	session   *session.Session
	found     bool          // a process of the peer has answered
	reachable bool          // as the failure detector says
	lostAt    time.Duration // since when it cannot be reached, or was not found
	left      bool          // it has stopped while others go on
	process   uint64        // boot id of the session; that of a client's session has another low half
	heardAt   time.Duration // when the last frame has arrived

	guests *guestSlot // has the guests of the peer

	in       map[uint64]*inPair
	pairs    map[border.Pair]*inPair // the same, in all sessions
	returned map[uint64]struct{}     // lanes of pairs that this node has returned

	unconfirmed []*inPair     // have handled messages whose confirmation was not sent
	confirmAt   time.Duration // when it is sent at the latest

	changed bool          // something has happened since transmit was called
	dueAt   time.Duration // when transmit must be called although nothing happens
}

// remote is what differs between nodes and clients at the other end of a session.
type remote interface {
	receive(now time.Duration, frame []byte)
	detected(a alive)                     // what failure detection, or the connection, says about the process
	connected(reachable bool)             // the process can be reached again, or cannot
	isHeard()                             // a sign of life
	restarted(e session.PeerRestarted)    // another process has replaced it
	replaced(reason string)               // the peer has another process in the place of this one
	control(m []byte) error               // handles a control message
	answered(m []byte) error              // handles a message in the lane of replies
	checkPair(pair border.Pair) error     // refuses pairs that the peer must not open
	opened(in *inPair)                    // a pair is new
	returns() (most, queued int)          // bound the pairs with instances of other nodes, and the answers that wait
	resume()                              // messages can be sent again
	refusals() *peerRefusals              // count what is refused
	refused(err error)                    // a message that a correct peer would not send
	refusedFrame(err error)               // a frame that a correct session would not send
	awaits() bool                         // whether the peer needs something from this process, which ends
	lookAt() (at time.Duration, due bool) // when the core must look at it, although nothing happens
}

// newPeer makes the common part of a peer. s has what is special in its session.
func newPeer(c *core, r remote, s session.Config) (p peer, err error) {
	s.Topology, s.Node, s.Rand = c.config.Topology, c.node, c.rand
	s.RetryMin, s.RetryMax = c.config.Retry.Min, c.config.Retry.Max
	s.Window, s.Buffers = c.window, &c.buffers
	p = peer{core: c, remote: r, name: s.Peer, reachable: true, changed: true, lostAt: c.now, in: map[uint64]*inPair{}}
	p.session, err = session.New(s)
	return p, err
}

// send gives a message to the session: a control message, a reply or a confirmation. They have no
// limit. The number of replies and of confirmations after them is bounded by the capacities of the
// edges, because the messages that they answer are not confirmed before.
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
	if p.found && !reachable {
		p.lostAt = now
	}
	p.remote.connected(reachable)
}

// receive handles a frame of the session.
func (p *peer) receive(now time.Duration, frame []byte) {
	p.heardAt, p.changed = now, true
	messages, err := p.session.Receive(now, frame, p.core.deliveries[:0])
	if p.session.Heard() {
		defer p.remote.isHeard()
	}
	for _, e := range p.session.Events() {
		p.event(e)
	}
	if err != nil {
		p.remote.refusedFrame(err)
	}
	defer func() {
		clear(messages)
		p.core.deliveries = messages
	}()
	for _, m := range messages {
		if err := p.message(m.Lane, m.Message); err != nil {
			p.remote.refused(err)
		}
	}
}

// event handles a change of the peer's process.
func (p *peer) event(e session.Event) {
	switch e := e.(type) {
	case session.PeerStarted:
		p.found, p.process = true, e.Boot
		p.core.role.peerFound(p)
		p.remote.resume()
	case session.PeerRestarted:
		p.process = e.New
		p.remote.restarted(e)
		p.core.role.peerFound(p)
	case session.Refused:
		r := &p.remote.refusals().refusesPeer
		if e.ByPeer {
			r = &p.remote.refusals().refusedByPeer
		}
		p.logRarely(r, slog.LevelError, "topogen: nodes do not accept each other", slog.Bool("by_peer", e.ByPeer), slog.String("reason", e.Text))
		if e.ByPeer && e.Reason == session.Replaced {
			p.remote.replaced(e.Text)
		}
	}
}

// message handles a message of the session.
func (p *peer) message(lane uint64, m []byte) error {
	if len(m) == 0 {
		return errMalformed
	}
	if lane < firstLane {
		return p.remote.control(m)
	}
	if lane&laneAnswers != 0 {
		return p.remote.answered(m)
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
	if err := p.remote.checkPair(pair); err != nil {
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
		p.remote.opened(in)
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
	for f := p.session.Frame(now); f != nil; f = p.session.Frame(now) {
		p.core.emit(p.name, f)
	}
	p.changed, p.dueAt = false, p.nextAt()
}

// nextAt returns when the core must look at the peer, although nothing happens.
func (p *peer) nextAt() time.Duration {
	at := never
	if t, due := p.session.Next(); due {
		at = t
	}
	if t, due := p.remote.lookAt(); due {
		at = min(at, t)
	}
	if len(p.unconfirmed) > 0 {
		at = min(at, p.confirmAt)
	}
	return at
}

// forgetProcess forgets what belongs to the former process of the peer.
func (p *peer) forgetProcess() {
	p.core.role.peerRestarted(p.name)
	p.in, p.returned = map[uint64]*inPair{}, nil
	p.left = false
}

// owes reports whether the peer has not received everything that was sent to it.
func (p *peer) owes() bool {
	v := p.session.Stats()
	return v.Pending > 0 || len(p.unconfirmed) > 0
}

// isHandled reports whether all messages that the peer has sent are handled.
func (p *peer) isHandled() bool {
	for _, in := range p.pairs {
		if in.waiting() > 0 {
			return false
		}
	}
	return true
}

// logRarely logs an event of the peer's session. A process that fails at its start, and is
// started again each second, causes as many of them.
func (p *peer) logRarely(r *refusals, level slog.Level, text string, attrs ...slog.Attr) {
	r.add(p.core.log, p.core.now, refusedLine{level, text, append([]slog.Attr{slog.String("node", p.name)}, attrs...)})
}

// reportRefusals logs what was refused and is not in the log yet.
func (p *peer) reportRefusals() {
	for _, r := range p.remote.refusals().list() {
		r.report(p.core.log)
	}
}
