package replicated

import (
	"context"

	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/store"
)

// Begin begins an epoch at a node, as another engine would.
func Begin(ctx context.Context, n *Node, url string) (store.Store, error) {
	return begin(ctx, n.machine, url)
}

// Epoch returns the number of the engines that the group has had, as a node knows it.
func Epoch(n *Node) (epoch uint64) {
	_ = n.machine.Stale(func(s *state) { epoch = s.epoch }) // 0 after an error
	return epoch
}

// RetryInterval is the time between two engines of a node that fail.
const RetryInterval = retryInterval

// AnswerCall answers a request of another node.
func AnswerCall(ctx context.Context, n *Node, request []byte, send func([]byte) error) error {
	return n.answerCall(ctx, request, send)
}

var Successor = successor

// NewPeer is the backend of another node that a test replaces.
func NewPeer(call func(ctx context.Context, node string, request []byte, receive func([]byte) error) error) protocol.Backend {
	return peer{"n1", call}
}

// PeerScheme begins the URL of a node that has no server.
const PeerScheme = peerScheme

// CallConfirmed is the first byte of a request that confirms messages.
const CallConfirmed = callConfirmed
