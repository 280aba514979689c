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
)

// nodeCore is the core of a node. It agrees with the other nodes about the end of the topology,
// drains, and serves clients.
type nodeCore struct {
	*core
	groups  *agreement
	clients clientPeers
	drain   drain
	cycles  fullCycles
	leader  string // the coordinator that has the reports of this node

	propose    func(p proposal) // runs a transaction, and posts its result; it does not wait
	leaveAfter time.Duration
}

// leaveAfter is how long a busy node waits for the others to drain too: when all nodes are stopped, the
// signals may be apart.
const leaveAfter = 2 * time.Second

func newNodeCore(config *Config, node string, boot uint64, random *rand.Rand, log *slog.Logger) *nodeCore {
	c := &nodeCore{core: newCore(config, node, boot, random, log), leaveAfter: leaveAfter}
	c.clients.core, c.clients.known = c, map[string]*clientPeer{}
	c.common, c.role = inCommon(config), c
	return c
}

func (c *nodeCore) began() {
	c.groups, c.cycles = newAgreement(c, c.pool.Groups()), newFullCycles(c.pool.Groups())
}

// accepts reports whether the address table has the process that answers for the name (identity.go). A
// name that is not in the table has no process yet.
func (c *nodeCore) accepts(name string, boot uint64) bool {
	if c.places == nil {
		return true
	}
	now, known := c.places.Boot(name)
	return !known || now == 0 || now == boot
}

// sender returns another node, or a client that the node has not forgotten. A node that the
// address table does not have, or that has left, is not added: a frame of its process may come
// after the core has dropped it. A node that has just joined sends again.
func (c *nodeCore) sender(name string, alive bool) *peer {
	if isClient(name) {
		return c.clients.sender(name, alive)
	}
	p := c.peers[name]
	if p == nil && !alive {
		if _, takesPart := slices.BinarySearch(c.participants(), name); !takesPart {
			return nil
		}
	}
	if p = c.peer(name); p == nil {
		return nil // this node
	}
	return &p.peer
}

func (c *nodeCore) handleOwn(h *happened) {
	c.cycles.watch(h.full, c.now)
	for _, name := range h.farewells {
		if c.sender(name, false) != nil {
			p := c.peers[name]
			p.finished, p.changed = true, true
		}
	}
	for i := range h.rooms {
		c.clients.makeRoom(&h.rooms[i])
	}
}

// agree reports the groups that are quiet, and gives what the nodes have agreed about to the driver.
func (c *nodeCore) agree(quiet []int, results []proposed) {
	for _, group := range quiet {
		c.groups.quiet(group)
	}
	c.groups.tellOwed()
	for i := range results {
		c.groups.proposed(&results[i].proposal, results[i].applied)
	}
	c.groups.propose()
}

func (c *nodeCore) forgetClients() { c.clients.forgetOld(c.now) }

func (c *nodeCore) leave(gone []string) {
	c.followCycles()
	c.mayLeave(c.now)
	for _, name := range gone {
		c.drop(name)
	}
}

func (c *nodeCore) dueAt() time.Duration { return c.cycles.lookAt }

// end tells the other nodes how this node has ended.
func (c *nodeCore) end(result error) {
	if c.endsTopology(result) {
		c.sendAll(laneControl, failure(fmt.Sprintf("node %s: %v", c.node, result)))
	}
	if c.finished = !c.left && c.failed == nil && hasFinished(c.pool); c.finished {
		c.sendAll(laneControl, []byte{controlFinished})
		c.pool.RefuseLate()
	}
}

// endsTopology reports whether an error of Run ends the topology on all nodes, as the error of
// a handler does. The errors of a node that ends alone do not: another process of the node
// can take its place. The drain timeout is one of them, because each node that drains has its
// own. When all groups with instances have finished, nothing is left to end: the error is that of an instance that
// was given up, or of a Close.
func (c *nodeCore) endsTopology(result error) bool {
	if result == nil || c.left || hasFinished(c.pool) {
		return false
	}
	_, own := errors.AsType[*nodeError](result)
	return !own && !errors.Is(result, ErrNodeFailed) && !errors.Is(result, piper.ErrDrainTimeout)
}

// control handles a message about the end of the topology.
func (c *nodeCore) control(p *nodePeer, message []byte) error {
	if message[0] == controlFailed {
		text := string(message[1:])
		if c.failed == nil && !c.ended {
			c.passOnFailure(p, text)
		}
		c.fail(fmt.Errorf("%w: %s", ErrNodeFailed, text))
		return nil
	}
	if message[0] == controlFull {
		return c.saysFull(p, newReader(message[1:]))
	}
	var m groupMessage
	if err := m.read(message[0], newReader(message[1:])); err != nil {
		return err
	}
	return c.groups.receive(p.name, m)
}

// failure is the message that the topology has failed. text names the node.
func failure(text string) []byte {
	return append([]byte{controlFailed}, firstLine(errors.New(text))...)
}

// passOnFailure tells the other nodes what one of them has said: that the topology has failed
// on a node. That node may not reach all of them, and it ends soon. They are told at once and not
// at the end of Run, because they end too, and then acknowledge nothing.
func (c *nodeCore) passOnFailure(from *nodePeer, text string) {
	for p := range c.nodes() {
		if p != from {
			p.send(laneControl, failure(text))
		}
	}
}

func (c *nodeCore) peerFound(p *peer) {
	if c.draining {
		p.send(laneControl, c.drain.message())
	}
	if c.finished {
		p.send(laneControl, []byte{controlFinished})
	}
	c.groups.record.look = true
	if c.failed == nil && p.name == c.coordinator() {
		c.groups.tellAll()
	}
}

func (c *nodeCore) peerRestarted(name string) { c.groups.restarted(name) }

func (c *nodeCore) forgottenBy(*nodePeer, session.PeerRestarted) error { return nil }

func (c *nodeCore) refusedBy(p *nodePeer, reason string) {
	c.fail(&nodeError{c.node, fmt.Errorf("%w: node %s says: %s", table.ErrSuperseded, p.name, reason)})
}

func (c *nodeCore) processOf(_ *nodePeer, boot uint64) uint64 { return boot }

func (c *nodeCore) doubt(processor, chunks int) { c.groups.doubt(processor, chunks) }

// coordinator is the node that decides when groups finish: the first one by name.
func (c *nodeCore) coordinator() string {
	for _, name := range c.participants() {
		if p := c.peers[name]; name == c.node || p != nil && p.reachable {
			return name
		}
	}
	return c.node
}

func (c *nodeCore) membersChanged() {
	for _, name := range c.participants() {
		c.peer(name)
	}
	c.followTable()
	if now := c.coordinator(); now != c.leader {
		c.leader = now
		c.groups.tellAll()
	}
	c.groups.membersChanged()
}
