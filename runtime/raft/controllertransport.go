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
func (t *controllerTransport) Send(to string, messages ...transport.Message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, o := range messages {
		if len(t.queue) >= controllerQueueMax {
			continue
		}
		if v := typed(t.node, to, o.Payload); v != nil {
			t.queue = append(t.queue, v)
		}
	}
	t.wake()
}

// drain removes and returns the queued messages.
func (t *controllerTransport) drain() (list []any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	list = slices.Clone(t.queue)
	clear(t.queue)
	t.queue = t.queue[:0]
	return list
}

// deliver passes a message of a peer to the node.
func (t *controllerTransport) deliver(v any) error {
	from, b, err := untyped(v)
	if err != nil {
		return err
	}
	t.mu.Lock()
	receive := t.receive
	t.mu.Unlock()
	if receive != nil {
		receive(from, [][]byte{b})
	}
	return nil
}

func (t *controllerTransport) Handle(_ uint64, receive func(from string, payloads [][]byte)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.receive = receive
}

func (t *controllerTransport) SetPeer(name, address string) {}
func (t *controllerTransport) RemovePeer(name string)       {}
func (t *controllerTransport) Close() error                 { return nil }

// PeerAddress returns the name itself, because the controller knows how to reach each
// node.
func (t *controllerTransport) PeerAddress(name string) (address string, ok bool) { return name, true }

// Stats returns no statistics: the edges count the messages that the controller carries.
func (t *controllerTransport) Stats() transport.Stats { return transport.Stats{} }
