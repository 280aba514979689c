package cluster

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/topogen/topogen/runtime/cluster/session"
	"github.com/topogen/topogen/runtime/piper/border"
)

// clientPeer is a client of this node.
type clientPeer struct {
	peer
	clients  *clientPeers
	owner    string // the certificate
	passedOn bool   // another node passes on the frames of the client
}

// receive implements remote. A frame that is empty says only that the client is there, see keepRelays.
func (p *clientPeer) receive(now time.Duration, frame []byte) {
	if len(frame) == 0 {
		p.heardAt, p.changed = now, true
		return
	}
	p.peer.receive(now, frame)
}

func (p *clientPeer) detected(a alive) { p.passedOn = a.passedOn }

func (p *clientPeer) connected(bool) {}

func (p *clientPeer) isHeard() {}

func (p *clientPeer) resume() {} // a client gets no messages of pairs

func (p *clientPeer) restarted(session.PeerRestarted) {
	p.logRarely(&p.refusals().restarts, slog.LevelInfo, "topogen: another node was restarted")
	p.forgetProcess()
}

func (p *clientPeer) replaced(string) {}

func (p *clientPeer) control(m []byte) error {
	if m[0] != controlLeft {
		return fmt.Errorf("%w: control message %d of a client", errMalformed, m[0])
	}
	p.left = true
	r := newReader(m[1:])
	return r.End()
}

// answered implements remote. A client that listens asks for an acknowledgement with an empty confirmation.
func (p *clientPeer) answered(m []byte) error {
	if len(m) != 1 || m[0] != controlConfirm {
		return fmt.Errorf("%w: message %d of a client in a lane of replies", errMalformed, m[0])
	}
	return nil
}

// checkPair refuses pairs that a client must not open: it sends only as an external
// processor.
func (p *clientPeer) checkPair(pair border.Pair) error {
	list := p.core.config.Processors
	if pair.From < 0 || pair.From >= len(list) || list[pair.From].Instances > 0 || pair.FromInstance != 0 {
		return fmt.Errorf("%w: a client sends as a processor that is not external", errMalformed)
	}
	return nil // the pool checks the receiver
}

func (p *clientPeer) opened(*inPair) {}

// clientReturnsMax bounds the pairs of a client that are returned, and the answers that it has not
// taken. They take as much memory as the window of its session.
const clientReturnsMax = 1 << 16

func (p *clientPeer) returns() (most, queued int) {
	return clientReturnsMax, p.session.Stats().QueuedMessages
}

// awaits reports whether a client that can be reached has not received everything. Nothing tells that a
// client has ended whose frames another node passes on.
func (p *clientPeer) awaits() bool {
	late := p.passedOn && p.core.now-p.core.endedAt >= farewellShort
	return p.reachable && !late && (p.owes() || p.session.Stats().AckPending)
}

func (p *clientPeer) lookAt() (at time.Duration, due bool) {
	at, due = p.forgetAt()
	return max(at, p.core.expireAt), due
}

// forgetAt returns when a client may be forgotten. A client that has said that it ends, or
// that has never had a session, is forgotten when its connection ends.
func (p *clientPeer) forgetAt() (at time.Duration, ok bool) {
	switch {
	case p.reachable && !p.passedOn:
		return 0, false
	case p.passedOn && p.reachable: // no connection tells that it has ended
		return p.heardAt + clientWindow, true
	case p.left, !p.found:
		return p.lostAt, true
	}
	return p.lostAt + clientWindow, true
}

// hasEnded reports whether the connection of a client has ended.
func (p *clientPeer) hasEnded(now time.Duration) bool {
	return !p.reachable || p.passedOn && now-p.heardAt >= relayedMax
}

// endedAt is when the connection of a client has ended.
func (p *clientPeer) endedAt() time.Duration {
	if p.reachable {
		return p.heardAt
	}
	return p.lostAt
}

func (p *clientPeer) refusals() *peerRefusals { return p.clients.refusalsOf(p.owner) }

func (p *clientPeer) refusedFrame(err error) { p.refused(err) }

// refused ends the connection of a client.
func (p *clientPeer) refused(err error) {
	p.refusals().badMessages.add(p.core.log, p.core.now, refusedLine{slog.LevelWarn, "topogen: a message of a client was refused, and its connection is closed",
		[]slog.Attr{slog.String("client", p.name), slog.Any("error", err)}})
	if p.clients.drop != nil {
		p.clients.drop(p.name)
	}
}
