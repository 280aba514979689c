package raft

import (
	"slices"
	"sync"

	"github.com/topogen/topogen/runtime/transport"
)

// controllerQueueMax limits the messages that wait for the controller. Further messages
// are lost, as in any network.
const controllerQueueMax = 4096

// controllerTransport is a transport whose messages are carried by the controller of a
// Processor, instead of a connection between nodes.
type controllerTransport struct {
	node string
	wake func()

	mu      sync.Mutex
	receive func(from string, payloads [][]byte)
	queue   []any
}

// Send queues messages for the next turn of the controller.
func (c *controllerTransport) Send(to string, messages ...transport.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range messages {
		if len(c.queue) >= controllerQueueMax {
			continue
		}
		if v := typed(c.node, to, o.Payload); v != nil {
			c.queue = append(c.queue, v)
		}
	}
	c.wake()
}

// drain removes and returns the queued messages.
func (c *controllerTransport) drain() (list []any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list = slices.Clone(c.queue)
	clear(c.queue)
	c.queue = c.queue[:0]
	return list
}

// deliver passes a message of a peer to the node.
func (c *controllerTransport) deliver(v any) error {
	from, b, err := untyped(v)
	if err != nil {
		return err
	}
	c.mu.Lock()
	receive := c.receive
	c.mu.Unlock()
	if receive != nil {
		receive(from, [][]byte{b})
	}
	return nil
}

func (c *controllerTransport) Handle(_ uint64, receive func(from string, payloads [][]byte)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.receive = receive
}

func (c *controllerTransport) SetPeer(name, address string) {}
func (c *controllerTransport) RemovePeer(name string)       {}
func (c *controllerTransport) Close() error                 { return nil }

// PeerAddress returns the name itself, because the controller knows how to reach each
// node.
func (c *controllerTransport) PeerAddress(name string) (address string, ok bool) { return name, true }

// Stats returns no statistics: the edges count the messages that the controller carries.
func (c *controllerTransport) Stats() transport.Stats { return transport.Stats{} }
