package cluster

import (
	"encoding/binary"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/topogen/topogen/runtime/internal/fields"
)

// A message may reach a node that does not run its instance, because the address table of
// the sending node was out of date. A node handles messages for all instances that it has,
// whatever its table says. It returns the pairs of others: it discards their messages, and
// the sending node, which keeps them, looks up the instance again. That node alone decides
// where they go next. No node forwards them, so they cannot run in circles.

// giveBack tells the sending node that an instance is not here.
func (p *peer) giveBack(lane uint64) error {
	most, queued := p.remote.returns()
	if max(len(p.returned), queued) >= most {
		return fmt.Errorf("cluster: %s has opened %d pairs with instances of other nodes, and has not received %d answers", p.name, len(p.returned), queued)
	}
	if p.returned == nil {
		p.returned = map[uint64]struct{}{}
	}
	p.returned[lane] = struct{}{}
	p.send(laneAnswers|lane, binary.AppendUvarint([]byte{controlReturned}, lane))
	return nil
}

// cameBack handles a pair that the other node has returned.
func (p *nodePeer) cameBack(r *fields.Reader) error {
	lane := r.Uint()
	if err := r.End(); err != nil || lane < firstLane || lane-firstLane >= uint64(len(p.out)) {
		return fmt.Errorf("%w: the unknown pair %d was returned", errMalformed, lane)
	}
	pair := p.out[lane-firstLane]
	if _, all := pair.to.(*castEnd); all || !pair.opened || pair.settled > 0 {
		return fmt.Errorf("%w: the pair %d was returned, which the node has accepted", errMalformed, lane)
	}
	c := p.core
	where := fmt.Sprintf("instance %d of %s", pair.ToInstance, c.config.Processors[pair.To].Name)
	p.own.misses.add(c.log, c.now, refusedLine{slog.LevelWarn, "topogen: an instance is not on the node that the address table names; it is looked up again",
		[]slog.Attr{slog.String("node", p.name), slog.String("instance", where)}})
	pair.away, pair.lookAt = true, c.now
	if pair.delay > 0 { // the last lookup has not helped
		pair.lookAt += pair.delay/2 + time.Duration(c.rand.Int64N(int64(pair.delay)))/2
	}
	pair.delay = min(max(2*pair.delay, c.config.Retry.Min), c.config.Retry.Max)
	c.returned = append(c.returned, pair)
	if c.stale != nil {
		c.stale()
	}
	pair.takeBack(fmt.Errorf("%w: %s was not on node %s", ErrUnreachable, where, p.name))
	return nil
}

// lookUpReturned sends the messages of returned pairs to where the instances are now. changed
// says that the address table has changed. Then it also looks up the pairs that wait for a
// node that has nothing of them: that node cannot have handled their messages.
func (c *core) lookUpReturned(now time.Duration, changed bool) {
	if changed {
		for _, p := range slices.Collect(c.nodes()) { // follow may add a node
			for _, pair := range slices.Clone(p.waiting) {
				pair.follow()
			}
		}
	}
	list := c.returned
	c.returned = nil
	for _, pair := range list {
		switch {
		case !pair.away: // the node has a new process, which got the messages
		case now < pair.lookAt && !changed:
			c.returned = append(c.returned, pair)
		default:
			pair.lookUp(now)
		}
	}
}

// expireReturned drops the messages of returned pairs that have waited too long.
func (c *core) expireReturned(now time.Duration) {
	before := now - c.config.Retry.Timeout
	if c.draining && now-c.drainAt >= c.config.Retry.Timeout {
		before = now
	}
	for _, pair := range c.returned {
		pair.expire(before, fmt.Errorf("%w: no node runs instance %d of %s, for %v", ErrUnreachable,
			pair.ToInstance, c.config.Processors[pair.To].Name, c.config.Retry.Timeout))
	}
}

// lookUp sends the messages of a returned pair to the node that the address table names.
func (p *outPair) lookUp(now time.Duration) {
	c := p.peer.core
	var to *nodePeer
	if name, ok := c.places.Node(p.To, p.ToInstance); ok {
		to = c.peer(name) // nil if the table names this node
	}
	if to == nil {
		p.lookAt = now + max(p.delay, expireEvery)
		c.returned = append(c.returned, p)
		return
	}
	if p.away = false; to != p.peer {
		p = p.moveTo(to)
	}
	p.pump()
}

// follow sends the messages of a pair that waits for a node to another node, if the address
// table names another one now.
func (p *outPair) follow() {
	if _, all := p.to.(*castEnd); all || p.opened || p.away || len(p.kept) == 0 {
		return
	}
	c := p.peer.core
	if name, ok := c.places.Node(p.To, p.ToInstance); ok && name != p.peer.name {
		if to := c.peer(name); to != nil {
			p.moveTo(to).pump()
		}
	}
}

// moveTo moves the messages of a pair that no session has to the pair with another node.
func (p *outPair) moveTo(to *nodePeer) *outPair {
	at := slices.IndexFunc(p.homes, func(o *outPair) bool { return o.peer == to })
	if at < 0 {
		if len(p.homes) == 0 {
			p.homes = []*outPair{p}
		}
		at = len(p.homes)
		p.homes = append(p.homes, to.newPair(p.Pair, p.to, p.outlet))
	}
	next := p.homes[at]
	next.homes, next.delay, next.kept, next.lostWhy = p.homes, p.delay, p.kept, p.lostWhy
	p.kept = nil
	for i := range next.kept {
		if k := &next.kept[i]; !k.dropped {
			n := uint64(k.left())
			p.peer.kept -= n
			to.kept += n
		}
	}
	p.peer.changed, to.changed = true, true
	p.outlet.State = next
	return next
}
