package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/topogen/topogen/runtime/cluster/table"
)

// simTables are the address tables of all nodes. As with raft, a node writes and reads only
// while it reaches a majority of the nodes, and its replica is late.
type simTables struct {
	sim    *simulation
	random *rand.Rand // of its own, so that the table does not change what the topology does
	log    [][]byte   // encoded commands
	open   []*simTable
}

// simTable is the table of one node. It remains when a process of the node ends, as a disk does.
type simTable struct {
	tables  *simTables
	node    int
	replica *table.Replica
	read    bool // a read of the log is in the script
}

const (
	simTableDelay = 20 * time.Millisecond // most time that a transaction or a read takes
	simTableRetry = 200 * time.Millisecond
)

func newSimTables(s *simulation) *simTables {
	return &simTables{sim: s, random: rand.New(rand.NewPCG(s.seed, 4))}
}

// of returns the table of a node.
func (t *simTables) of(node int) *simTable {
	for len(t.open) <= node {
		t.open = append(t.open, &simTable{tables: t, node: len(t.open), replica: table.NewReplica()})
	}
	return t.open[node]
}

// delay draws how long something takes.
func (t *simTables) delay(most time.Duration) time.Duration {
	return time.Duration(t.random.Int64N(int64(most)))
}

// hasMajority reports whether the node runs and reaches a majority of the nodes.
func (t *simTable) hasMajority() bool {
	s := t.tables.sim
	reached := 0
	for i, n := range s.nodes[:s.design.nodes] {
		up := (n.state == simRunning || n.state == simEnding || n.joining) && !n.frozen && n.resumeAt <= s.now
		if up && (i == t.node || !s.cut[[2]int{i, t.node}] && !s.cut[[2]int{t.node, i}]) {
			reached++
		}
	}
	return 2*reached > s.design.nodes
}

// catchUp applies what the log has to the replica, up to one command or all.
func (t *simTable) catchUp(all bool) {
	for at := t.replica.Revision().Index; at < uint64(len(t.tables.log)); at++ {
		c, err := table.ReadCommand(t.tables.log[at])
		if err != nil {
			t.tables.sim.fault("a command cannot be read again: %v", err)
			return
		}
		t.replica.Apply(table.Revision{Term: 1, Index: at + 1}, int64(t.tables.sim.now), c)
		if !all {
			break
		}
	}
}

// Txn implements table.Table. A node that starts waits for nothing.
func (t *simTable) Txn(_ context.Context, guards []table.Guard, changes []table.Change) (table.Revision, error) {
	c := &table.Command{Kind: table.CommandTxn, Guards: guards, Changes: changes}
	b, err := table.AppendCommand(nil, c)
	if err != nil {
		return table.Revision{}, err
	}
	t.catchUp(true)
	t.tables.log = append(t.tables.log, b)
	revision := table.Revision{Term: 1, Index: uint64(len(t.tables.log))}
	out := t.replica.Apply(revision, int64(t.tables.sim.now), c)
	for _, other := range t.tables.open {
		if other != t {
			other.readSoon(t.tables.delay(simTableDelay))
		}
	}
	return revision, out.Err(c)
}

// readSoon lets the node read the log.
func (t *simTable) readSoon(after time.Duration) {
	if t.read {
		return
	}
	t.read = true
	s := t.tables.sim
	s.at(s.now+after, fmt.Sprintf("%s reads the address table", nodeName(t.node)), func() {
		t.read = false
		if n := s.nodes[t.node]; n.state == simGone || n.frozen {
			return // its next process reads
		}
		if !t.hasMajority() {
			t.readSoon(simTableRetry)
			return
		}
		if t.catchUp(false); t.replica.Revision().Index < uint64(len(t.tables.log)) {
			t.readSoon(t.tables.delay(simTableDelay))
		}
		s.nodes[t.node].post(func(h *happened) { h.members = true })
		s.point(s.nodes[t.node])
	})
}

// propose runs a proposal of the core. Now and then its result is lost, and it is repeated.
func (n *simNode) propose(p proposal) {
	n.sim.counts["proposals"]++
	n.sim.point(n)
	n.tryPropose(p, n.sim.tables.delay(simTableDelay))
}

func (n *simNode) tryPropose(p proposal, after time.Duration) {
	s := n.sim
	s.at(s.now+after, n.name+" writes into the address table", func() {
		t := s.tables.of(n.index)
		switch {
		case n.state != simRunning && n.state != simEnding || n.frozen:
			return
		case !t.hasMajority():
			n.tryPropose(p, simTableRetry)
			return
		}
		_, err := t.Txn(context.Background(), p.guards, []table.Change{p.agree})
		s.point(n)
		if err != nil {
			s.counts["proposals that come too late"]++
		}
		if s.tables.random.IntN(8) == 0 {
			n.tryPropose(p, s.tables.delay(simTableDelay))
			return
		}
		n.post(func(h *happened) {
			h.members = true
			h.proposed = append(h.proposed, proposed{p, err == nil})
		})
	})
}

func (t *simTable) Replica() *table.Replica    { return t.replica }
func (t *simTable) Sync(context.Context) error { return nil }
func (t *simTable) Done() <-chan struct{}      { return nil }
func (t *simTable) Err() error                 { return nil }
func (t *simTable) Close() error               { return nil }
func (t *simTable) Acquire(context.Context, string, string, time.Duration) (*table.Lease, error) {
	return nil, table.ErrHeld
}
