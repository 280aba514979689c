package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/piper"
)

// leaveTableTimeout is how long a node that is not a first member waits at its end for the
// address table, and how long the first members wait for such nodes. The table may have no
// majority.
const leaveTableTimeout = 5 * time.Second

// leavePoll is how often a first member looks whether the other nodes have left.
const leavePoll = 5 * time.Millisecond

// awaitLeaving keeps the address table open when all nodes end, until the nodes that are
// not first members have left it. Without a majority of the first members they could not.
func (n *Node) awaitLeaving() {
	if _, first := n.settings.Nodes[n.settings.node]; !first || n.table == nil {
		return
	}
	n.running.Lock()
	alone := n.core.left
	n.running.Unlock()
	if alone {
		return // the others go on
	}
	timeout, poll := time.After(leaveTableTimeout), time.NewTicker(leavePoll)
	defer poll.Stop()
	for n.othersAlive() {
		select {
		case <-poll.C:
		case <-timeout:
			return
		}
	}
}

// othersAlive reports whether a node of the address table is alive that is not a first
// member.
func (n *Node) othersAlive() bool {
	alive := n.alive()
	return slices.ContainsFunc(n.table.Replica().Nodes(), func(t *table.Node) bool {
		_, first := n.settings.Nodes[t.Name]
		return !first && slices.Contains(alive, t.Name)
	})
}

// nodeError is why one node cannot continue: its disk has failed, or another process has its
// name. The other nodes continue.
type nodeError struct {
	node string
	err  error
}

func (e *nodeError) Error() string { return fmt.Sprintf("cluster: node %s: %v", e.node, e.err) }

func (e *nodeError) Unwrap() error { return e.err }

// leaveTable says in the address table that a node has left that is not a first member.
// No instance waits for its next process, so the topology must be able to finish without
// it. A first member remains a member, because its instances stay with it.
func (n *Node) leaveTable() {
	if _, first := n.settings.Nodes[n.settings.node]; first || n.table == nil {
		return
	}
	if t := n.table.Replica().Node(n.settings.node); t == nil || t.Boot != n.boot {
		return // it was removed, or its next process has joined
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveTableTimeout)
	defer cancel()
	if err := table.Leave(ctx, n.table, n.settings.node, n.boot); err != nil {
		n.log.Warn("topogen: this node remains in the address table; the topology does not finish before the node runs again or has left",
			slog.String("node", n.settings.node), slog.Any("error", err))
	}
}

// hasFinished reports whether all groups with instances have finished.
func hasFinished(p pool) bool {
	for i := range p.Groups() {
		if g := p.Group(i); !g.Empty && g.Phase != piper.GroupFinished {
			return false
		}
	}
	return true
}

// farewell is how long a node waits at its end until the other nodes know how the topology
// has ended. If all groups have finished, a node that does not learn it would wait forever.
func (c *Config) farewell(finished bool) time.Duration {
	if finished {
		return max(farewellShort, c.Retry.Timeout)
	}
	return farewellShort
}

// farewellShort is how long a node waits that has failed, and a client.
const farewellShort = 2 * time.Second

// End implements border.Nodes. It waits until the other nodes know how the topology has
// ended.
func (n *Node) End(result error) {
	n.ending.Store(true)
	n.duplicates.report(n.log)
	if n.done != nil {
		flushed := make(chan struct{})
		n.post(func(h *happened) { h.ended, h.result, h.flushed = true, result, flushed })
		finished := hasFinished(n.core.pool)
		if n.knowsEnd.Store(finished); finished && n.entered {
			n.endNoted.Do(n.noteEnd) // it may not have followed the table yet
		}
		wait := n.settings.farewell(result == nil || finished)
		if n.client != nil {
			wait = farewellShort // the nodes need nothing from a client that has ended
		}
		select {
		case <-flushed:
		case <-time.After(wait):
		}
		n.awaitLeaving()
	}
	n.stop()
	if n.done != nil {
		<-n.done
	}
	if n.transport != nil && n.client == nil {
		n.transport.Handle(n.group(), nil)
		n.transport.Handle(n.clients.group(), nil)
		n.transport.Handle(n.farewells.group(), nil)
	}
	n.proposals.Wait()
	if n.entered {
		n.leaveTable()
		n.forgetProcess(n.boot)
	}
	n.fence.end()
	if n.detector != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		_ = n.detector.Leave(ctx) // otherwise the others detect it
		cancel()
		_ = n.detector.Close()
	}
	if n.table != nil {
		if err := n.table.Close(); err != nil {
			n.log.Warn("topogen: closing the address table", slog.Any("error", err))
		}
	}
	if n.transport != nil {
		if err := n.close(); err != nil {
			n.log.Warn("topogen: closing the transport", slog.Any("error", err))
		}
	}
}
