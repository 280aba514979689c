// Package burst sends many messages to many instances.
package burst

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/topo"
)

//go:generate go tool topogen build

// Instances is the number of nodes.
const Instances = 100_000

// Item is the message type. It has 64 bytes.
type Item struct {
	To int
	_  [7]int
}

// Source sends the same number of items to each of the first nodes, one node after the
// other.
type Source struct{ nodes, each, at int }

func (s *Source) Ping(out *SourceSender) error {
	if s.at == s.nodes*s.each {
		return topo.Done
	}
	s.at++
	return out.SendItem(Item{To: (s.at - 1) / s.each})
}

// Node counts items.
type Node struct {
	handled *atomic.Int64
	slow    time.Duration // of the first call
}

//go:noinline
func (n *Node) ReceiveItem(*Item) {
	if n.slow > 0 {
		time.Sleep(n.slow)
		n.slow = 0
	}
	n.handled.Add(1)
}

// Load says what Run sends.
type Load struct {
	Nodes, Each int           // items to each of the first nodes
	Slow        time.Duration // of the first call of two nodes
	Handled     func()        // if not nil: called when all items are handled, before the topology stops
}

// Run sends items and returns when they are handled and the topology has stopped.
func Run(l Load, options ...pool.Option) error {
	var count atomic.Int64
	topology, err := New(Processors{
		Source: func(topo.Instance) (*Source, error) { return &Source{nodes: l.Nodes, each: l.Each}, nil },
		Node: func(in topo.Instance) (*Node, error) {
			n := &Node{handled: &count}
			if in.Index < 2 {
				n.slow = l.Slow
			}
			return n, nil
		},
	}, options...)
	if err != nil {
		return err
	}
	if l.Handled == nil {
		topology.Door().Close()
		return topology.Run(context.Background())
	}
	ended := make(chan error, 1)
	go func() { ended <- topology.Run(context.Background()) }()
	for look := time.NewTicker(time.Millisecond); count.Load() < int64(l.Nodes*l.Each); <-look.C {
		select {
		case err := <-ended:
			return err
		default:
		}
	}
	l.Handled()
	topology.Door().Close()
	return <-ended
}
