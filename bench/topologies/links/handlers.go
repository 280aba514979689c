// Package links has many instances that send messages to some neighbors each.
package links

import (
	"context"
	"sync/atomic"

	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/topo"
)

//go:generate go tool topogen build

// Instances is the number of nodes.
const Instances = 1_000_000

// Begin starts a round.
type Begin struct{ Nodes, Neighbors int }

// Start makes a node send a Ball to each of its neighbors.
type Start struct{ To, Nodes, Neighbors int }

// Ball is the message from node to node. It has 64 bytes.
type Ball struct {
	To int
	_  [7]int
}

// Source starts one node after the other.
type Source struct {
	begin Begin
	next  int
}

// ReceiveBegin begins a round.
func (s *Source) ReceiveBegin(m *Begin) { s.begin, s.next = *m, 0 }

// Ping starts the next node.
func (s *Source) Ping(out *SourceSender) error {
	if s.next == s.begin.Nodes {
		return topo.Idle
	}
	out.SendStart(Start{s.next, s.begin.Nodes, s.begin.Neighbors})
	s.next++
	return nil
}

// Node sends to its neighbors and counts what it receives.
type Node struct {
	index    int
	received *atomic.Int64
}

// stride is prime and far from the numbers of nodes, so that neighbors are in different parts of the memory.
const stride = 7_368_787

//go:noinline
func (n *Node) ReceiveStart(m *Start, out *NodeSender) {
	for k := range m.Neighbors {
		out.SendBall(Ball{To: (n.index + (k+1)*stride) % m.Nodes})
	}
}

//go:noinline
func (n *Node) ReceiveBall(*Ball) { n.received.Add(1) }

// Links is a topology that runs.
type Links struct {
	topology *Topology
	received atomic.Int64
	sent     int64
	cancel   context.CancelFunc
	ended    chan error
}

// Run starts a topology.
func Run(options ...pool.Option) (*Links, error) {
	l := &Links{ended: make(chan error, 1)}
	var err error
	l.topology, err = New(Processors{
		Node: func(in topo.Instance) (*Node, error) { return &Node{in.Index, &l.received}, nil },
	}, options...)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	go func() { l.ended <- l.topology.Run(ctx) }()
	return l, nil
}

// Round makes each of the first nodes send a message to some neighbors. It returns when they are handled.
func (l *Links) Round(nodes, neighbors int) error {
	l.sent += int64(nodes) * int64(neighbors)
	return l.topology.Door().SendBegin(context.Background(), Begin{nodes, neighbors})
}

// Done reports whether all messages of the rounds are handled.
func (l *Links) Done() bool { return l.received.Load() == l.sent }

// Stop ends the topology.
func (l *Links) Stop() error {
	l.cancel()
	return <-l.ended
}
