package cluster

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/topogen/topogen/runtime/cluster/session"
)

// A node remembers a client whose connection has ended, because the client may come back and
// send again what it has sent before. If the node has no room for another client, it forgets
// one of these: the client learns it when it comes back, and drops what it had sent (see
// peer.forgottenBy). Nothing that a client sends makes a node forget a client that is connected,
// or whose messages are not handled yet.

// relayedMax is how long ago a client has sent its last frame that another node passes on, if
// its connection counts as ended: it sends one in each refreshEvery.
const relayedMax = 6 * refreshEvery

// roomFor asks the core to forget a client.
type roomFor struct {
	owner string      // the certificate of the new client
	own   bool        // one with this certificate, because it has as many as it may have
	done  chan<- bool // gets whether there is room now; nil: no goroutine waits
}

// awaitRoom lets the core forget a client. It returns false if none of them can be forgotten.
func (c *clients) awaitRoom(ctx context.Context, owner string, own bool) bool {
	done := make(chan bool, 1)
	c.node.post(func(h *happened) { h.rooms = append(h.rooms, roomFor{owner, own, done}) })
	select {
	case made := <-done:
		return made
	case <-ctx.Done():
	case <-c.node.stop:
	}
	return false
}

// makeRoom forgets a client whose connection has ended. The certificate with the most such clients
// gives the room, so that one with which new clients connect again and again takes no room
// from the others.
func (c *core) makeRoom(r *roomFor) {
	var list []*peer
	ended := map[string]int{}
	for _, p := range c.ordered {
		if p.slot != nil && (!r.own || p.owner == r.owner) && p.hasEnded(c.now) && p.isHandled() {
			list = append(list, p)
			ended[p.owner]++
		}
	}
	slices.SortStableFunc(list, func(a, b *peer) int {
		return cmp.Or(cmp.Compare(ended[b.owner], ended[a.owner]), cmp.Compare(a.owed(), b.owed()), cmp.Compare(a.endedAt(), b.endedAt()))
	})
	made := slices.ContainsFunc(list, c.forgetClient) // the first client that has not come back in the meantime
	if made {
		c.ordered = slices.DeleteFunc(c.ordered, func(p *peer) bool { return c.peers[p.name] != p })
		c.clients.collect()
	}
	if r.done != nil {
		r.done <- made
	}
}

// hasEnded reports whether the connection of a client has ended.
func (p *peer) hasEnded(now time.Duration) bool {
	return !p.reachable || p.passedOn && now-p.heardAt >= relayedMax
}

// endedAt is when the connection of a client has ended.
func (p *peer) endedAt() time.Duration {
	if p.reachable {
		return p.heardAt
	}
	return p.lostAt
}

// owed is 0 if a client has received all confirmations and replies, so that it loses nothing if
// it comes back, and 1 if not.
func (p *peer) owed() int {
	if p.session.Stats().Pending == 0 && len(p.answers) == 0 && len(p.unconfirmed) == 0 {
		return 0
	}
	return 1
}

// forgetClient forgets a client, and returns false if the client has come back. The caller
// removes it from c.ordered.
func (c *core) forgetClient(p *peer) bool {
	if f := c.clients.forgotten; f != nil && !f(p.name) {
		return false
	}
	delete(c.peers, p.name)
	c.clients.leaving = append(c.clients.leaving, p)
	return true
}

// bootForClient is the boot id of this process in a new session with a client. A client notices
// by the low half that the node has forgotten it, and by the high half that the node still
// runs.
func (c *core) bootForClient() uint64 {
	c.clients.sessions++
	return c.boot&^sessionMask | uint64(c.clients.sessions)
}

const sessionMask = 1<<32 - 1

// forgottenBy returns why this client drops what it has sent to a node that runs and has
// forgotten it: the node cannot know whether it has handled these messages before. It returns
// nil if the node has a new process, which has handled nothing.
func (p *peer) forgottenBy(e session.PeerRestarted) error {
	if !p.core.client || e.Old&^sessionMask != e.New&^sessionMask {
		return nil
	}
	p.logRarely(&p.refusals().restarts, slog.LevelWarn, "topogen: a node has given the place of this client to another one; messages that were sent to it and not confirmed are dropped")
	return fmt.Errorf("%w: %s has forgotten this client, so it is not known whether the message was handled", ErrUnreachable, p.name)
}

// loseSent drops what the session got: the other node may have handled it.
func (p *outPair) loseSent(why error) {
	for i := range p.kept[:p.handed] {
		p.kept[i].atMostOnce = true
	}
	p.takeBack(why)
}
