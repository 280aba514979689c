package cluster

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/topogen/topogen/runtime/cluster/session"
	"github.com/topogen/topogen/runtime/piper/border"
)

// clientCore is the core of a client. A client has no instances, and takes no part in anything but
// the messages that it sends.
type clientCore struct{ *core }

func newClientCore(config *Config, node string, boot uint64, random *rand.Rand, log *slog.Logger) *clientCore {
	c := &clientCore{core: newCore(config, node, boot, random, log)}
	c.role = c
	return c
}

func (c *clientCore) began() {}

// accepts implements role. A client has no table of its own.
func (c *clientCore) accepts(string, uint64) bool { return true }

func (c *clientCore) sender(name string, _ bool) *peer {
	if p := c.peer(name); p != nil {
		return &p.peer
	}
	return nil
}

func (c *clientCore) handleOwn(*happened) {}

func (c *clientCore) membersChanged() { c.followTable() }

func (c *clientCore) peerFound(*peer) {}

func (c *clientCore) peerRestarted(string) {}

// forgottenBy returns why this client drops what it has sent to a node that runs and has
// forgotten it: the node cannot know whether it has handled these messages before. It returns
// nil if the node has a new process, which has handled nothing.
func (c *clientCore) forgottenBy(p *nodePeer, e session.PeerRestarted) error {
	if e.Old&^sessionMask != e.New&^sessionMask {
		return nil
	}
	p.logRarely(&p.own.restarts, slog.LevelWarn, "topogen: a node has given the place of this client to another one; messages that were sent to it and not confirmed are dropped")
	return fmt.Errorf("%w: %s has forgotten this client, so it is not known whether the message was handled", ErrUnreachable, p.name)
}

func (c *clientCore) refusedBy(*nodePeer, string) {}

// processOf implements role. The node has another low half in its boot id for each session with a client.
func (c *clientCore) processOf(p *nodePeer, boot uint64) uint64 {
	if (p.process^boot)&^sessionMask == 0 {
		return p.process
	}
	return boot
}

// control implements role. The cluster may be started again after it has failed.
func (c *clientCore) control(p *nodePeer, m []byte) error {
	if m[0] != controlFailed {
		return fmt.Errorf("%w: control message %d to a client", errMalformed, m[0])
	}
	c.log.Warn("topogen: the topology has failed on a node", slog.String("node", p.name), slog.String("error", string(m[1:])))
	return nil
}

// noPlace implements role. The instances on each node get the message along the link to all others.
func (c *clientCore) noPlace(f *forward, name string) {
	if name != c.node {
		c.core.noPlace(f, name)
		return
	}
	f.outlet.Reaches(f.chunk.Messages, 0)
	f.outlet.Settle(f.chunk.Messages, nil)
	border.ReuseChunk(f.chunk.Data)
}

func (c *clientCore) doubt(int, int) {}

func (c *clientCore) drainBegan() {}

func (c *clientCore) agree([]int, []proposed) {}

func (c *clientCore) forgetClients() {}

// leave ends a client that is closed, when all its messages are settled. It has no messages to expect.
func (c *clientCore) leave([]string) {
	if !c.draining || c.left || c.ended || !c.pool.IsClosed() || c.now < c.lookAt {
		return
	}
	c.lookAt = c.now + closeEvery
	c.giveUp()
	if c.pool.IsIdle() {
		c.leaveOthers()
	}
}

func (c *clientCore) dueAt() time.Duration { return never }

func (c *clientCore) end(error) {}

func (c *clientCore) coordinator() string { return "" }
