package cluster

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/topogen/topogen/runtime/internal/fields"
)

// While a queue within a cycle is full, no message enters the cycle. The pool ensures this on its own node. If a
// cycle spans nodes, the sources of other nodes can keep the queue full, and then the messages that wait on this node
// never enter. So a node tells the others which of its groups have been full for a while, and holds back the messages
// that enter a group while another node says that the group is full there. Its queues become empty without them,
// because the messages within a cycle are never held back.
//
// A short queue is full for a moment after each message. This must not slow down the other nodes.

const (
	fullLook  = 20 * time.Millisecond // between two looks at a group that may be full
	fullAfter = time.Second           // without a moment of room: longer than messages to distant nodes are on their way
)

// fullCycles are the groups that have a full queue.
type fullCycles struct {
	watched []bool          // by group: it was full on this node at the last look, or the pool has reported it since then
	since   []time.Duration // by group: when it became full, if it is watched
	here    []bool          // by group: it is full on this node for fullAfter
	held    []bool          // by group: another node says that it is full
	said    bool            // another node may say so
	lookAt  time.Duration   // never: no group is watched, and all nodes know it
}

func newFullCycles(groups int) fullCycles {
	return fullCycles{
		watched: make([]bool, groups), since: make([]time.Duration, groups), here: make([]bool, groups), held: make([]bool, groups), lookAt: never,
	}
}

// appendGroups appends the numbers of the groups that are listed.
func appendGroups(b []byte, listed []bool) []byte {
	for group, is := range listed {
		if is {
			b = binary.AppendUvarint(b, uint64(group))
		}
	}
	return b
}

// readGroups reads what appendGroups has written.
func readGroups(r *fields.Reader, groups int) ([]bool, error) {
	listed := make([]bool, groups)
	for len(r.B) > 0 {
		group := r.Number(indexMax)
		if r.Err != nil || group >= groups {
			return nil, fmt.Errorf("%w: a list of groups has %d, and there are %d", errMalformed, group, groups)
		}
		listed[group] = true
	}
	return listed, nil
}

// watch looks at groups that the pool has reported as full.
func (f *fullCycles) watch(groups []int, now time.Duration) {
	for _, group := range groups {
		f.watched[group], f.since[group] = true, now
		f.lookAt = min(f.lookAt, now+fullLook)
	}
}

// look looks at the watched groups.
func (f *fullCycles) look(p pool, now time.Duration) {
	for group, watched := range f.watched {
		if !watched {
			continue
		}
		full, hadRoom := p.IsFull(group)
		if f.watched[group] = full; hadRoom {
			f.since[group] = now
		}
		f.here[group] = full && now-f.since[group] >= fullAfter
	}
}

// followCycles tells the others which groups are full here, and holds back messages for groups that are full
// elsewhere.
func (c *nodeCore) followCycles() {
	f := &c.cycles
	if c.now >= f.lookAt {
		f.look(c.pool, c.now)
		known := true
		for p := range c.nodes() {
			known = p.tellFull(f.here) && known
		}
		if f.lookAt = c.now + fullLook; known && !slices.Contains(f.watched, true) {
			f.lookAt = never
		}
	}
	if f.said {
		c.holdBack()
	}
}

// tellFull tells the node which groups are full here. It reports whether the node knows it. While it cannot be reached,
// or has not received what it was told before, it is told nothing, so that no more than one message waits for it.
func (p *nodePeer) tellFull(groups []bool) (known bool) {
	switch {
	case slices.Equal(p.toldFull, groups) || p.toldFull == nil && !slices.Contains(groups, true):
		return true
	case !p.takes() || p.session.Queued(laneControl) > 0:
		return false
	}
	p.toldFull = slices.Clone(groups)
	p.send(laneControl, appendGroups([]byte{controlFull}, groups))
	return true
}

// saysFull handles the control message about groups that are full on the node.
func (c *nodeCore) saysFull(p *nodePeer, r *fields.Reader) (err error) {
	p.saidFull, err = readGroups(r, c.pool.Groups())
	c.cycles.said = true
	return err
}

// holdBack holds back the messages for groups that are full on another node, while this node reaches it. A node that
// drains and refuses messages for a group does not: it may be the reason why a queue on the other node is full, and it
// gets no more messages that enter the group.
func (c *nodeCore) holdBack() {
	f := &c.cycles
	f.said = false
	held := make([]bool, len(f.held))
	for p := range c.nodes() {
		for group, full := range p.saidFull {
			f.said = f.said || full // perhaps the node can be reached later
			held[group] = held[group] || full && p.takes() && !c.refuses(group)
		}
	}
	for group, hold := range held {
		if hold != f.held[group] {
			c.pool.HoldBack(group, hold)
		}
	}
	f.held = held
}
