// Package burst sends many messages to many instances.
package burst

import (
	"context"
	"sync/atomic"

	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/topo"
)

//go:generate go tool topogen build

// Instances is the number of nodes.
const Instances = 20_000

// Item is the message type. It has 64 bytes.
type Item struct {
	To int
	_  [7]int
}

// Source sends the given number of items to each of the first nodes.
type Source struct {
	nodes, rounds int
	at            int
}

func (s *Source) Ping(out *SourceSender) error {
	if s.at == s.nodes*s.rounds {
		return topo.Done
	}
	s.at++
	return out.SendItem(Item{To: (s.at - 1) % s.nodes})
}

// Node counts items.
type Node struct{ handled *atomic.Int64 }

//go:noinline
func (n *Node) ReceiveItem(*Item) { n.handled.Add(1) }

// Run sends items to each of the first nodes, and returns when they are handled and the
// topology has stopped. It calls handled before the topology stops.
func Run(nodes, rounds int, handled func(), options ...pool.Option) error {
	var count atomic.Int64
	topology, err := New(Processors{
		Source: func(topo.Instance) (*Source, error) { return &Source{nodes: nodes, rounds: rounds}, nil },
		Node:   func(topo.Instance) (*Node, error) { return &Node{&count}, nil },
	}, options...)
	if err != nil {
		return err
	}
	if handled == nil {
		topology.Door().Close()
		return topology.Run(context.Background())
	}
	ended := make(chan error, 1)
	go func() { ended <- topology.Run(context.Background()) }()
	for count.Load() < int64(nodes*rounds) {
		select {
		case err := <-ended:
			return err
		default:
		}
	}
	handled()
	topology.Door().Close()
	return <-ended
}
