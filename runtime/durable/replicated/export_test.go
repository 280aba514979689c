package replicated

import (
	"context"

	"github.com/topogen/topogen/runtime/durable/store"
)

// Begin begins an epoch at a node, as another engine would.
func Begin(ctx context.Context, n *Node, url string) (store.Store, error) {
	return begin(ctx, n.machine, url)
}

// AnswerCall answers a request of another node.
func AnswerCall(ctx context.Context, n *Node, request []byte) error {
	return n.answerCall(ctx, request, func([]byte) error { return nil })
}
