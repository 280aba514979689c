package raft

import (
	"slices"
	"sync"

	"github.com/topogen/topogen/runtime/transport"
)

// carriedMax bounds what waits for the controller to carry it; what is beyond is
// lost, as on any network.
const controllerQueueMax = 4096

// carried is a transport whose messages the controller of a Processor carries
// (rast.md 2.16: RAFTCoreMP talks to its TController alone).
type controllerTransport struct {
	node string
	wake func()

	mu      sync.Mutex
	receive func(from string, payloads [][]byte)
	queue   []any
}

// Send hands messages to the controller, at its next turn.
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

// take returns what waits for the controller.
func (c *controllerTransport) drain() (list []any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list = slices.Clone(c.queue)
	clear(c.queue)
	c.queue = c.queue[:0]
	return list
}

// bring hands a message of a peer to the node.
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

// PeerAddress is the name itself: the controller finds the way.
func (c *controllerTransport) PeerAddress(name string) (address string, ok bool) { return name, true }

// Stats knows nothing: edges count what the controller carries.
func (c *controllerTransport) Stats() transport.Stats { return transport.Stats{} }
