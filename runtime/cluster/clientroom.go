package cluster

import (
	"cmp"
	"context"
	"slices"
)

// A node remembers a client whose connection has ended, because the client may come back and
// send again what it has sent before. If the node has no room for another client, it forgets
// one of these: the client learns it when it comes back, and drops what it had sent (see
// clientCore.forgottenBy). Nothing that a client sends makes a node forget a client that is connected,
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
	case <-c.node.ctx.Done():
	}
	return false
}

// makeRoom forgets a client whose connection has ended. The certificate with the most such clients
// gives the room, so that one with which new clients connect again and again takes no room
// from the others.
func (c *clientPeers) makeRoom(r *roomFor) {
	var list []*clientPeer
	ended := map[string]int{}
	for _, o := range c.core.ordered {
		p := c.known[o.name]
		if p != nil && (!r.own || p.owner == r.owner) && p.hasEnded(c.core.now) && p.isHandled() {
			list = append(list, p)
			ended[p.owner]++
		}
	}
	slices.SortStableFunc(list, func(a, b *clientPeer) int {
		return cmp.Or(cmp.Compare(ended[b.owner], ended[a.owner]), byLoss(a, b), cmp.Compare(a.endedAt(), b.endedAt()))
	})
	made := slices.ContainsFunc(list, c.forget) // the first client that has not come back in the meantime
	if made {
		c.core.ordered = slices.DeleteFunc(c.core.ordered, func(p *peer) bool { return isClient(p.name) && c.known[p.name] == nil })
		c.collect()
	}
	if r.done != nil {
		r.done <- made
	}
}

// byLoss orders clients that have received all confirmations and replies, and lose nothing if
// they come back, before others.
func byLoss(a, b *clientPeer) int {
	switch {
	case a.owes() == b.owes():
		return 0
	case b.owes():
		return -1
	}
	return 1
}
