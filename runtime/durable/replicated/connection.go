package replicated

import (
	"context"
	"sync"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// connection receives the messages of a process from whichever node leads.
type connection struct {
	messages chan protocol.Message
	cancel   context.CancelFunc
	once     sync.Once
}

// Connect implements protocol.Backend. The connection follows the leader.
func (n *Node) Connect(group, pid string) (protocol.Connection, error) {
	ctx, cancel := context.WithCancel(n.ctx)
	c := &connection{messages: make(chan protocol.Message), cancel: cancel}
	go n.follow(ctx, c, group, pid)
	return c, nil
}

// follow passes the messages on, from one leader after the other.
func (n *Node) follow(ctx context.Context, c *connection, group, pid string) {
	defer close(c.messages)
	for ctx.Err() == nil {
		b, changed, err := n.backend(false)
		if b != nil {
			var from protocol.Connection
			if from, err = b.Connect(group, pid); err == nil {
				pass(ctx, c, from, changed.Done())
			}
		}
		if err != nil {
			n.log.Warn("durable: cannot receive messages from the leader", "error", err)
		}
		wait(ctx, retryInterval)
	}
}

// pass passes messages on until the connection or its backend ends, or the leader may have
// changed.
func pass(ctx context.Context, c *connection, from protocol.Connection, changed <-chan struct{}) {
	defer from.Close()
	confirmed := func() {}
	if f, ok := from.(protocol.Confirmer); ok { // an engine sends a message that was not used to another connection
		f.Confirm()
		confirmed = f.Confirmed
	}
	for {
		select {
		case m, ok := <-from.Messages():
			if !ok {
				return
			}
			select {
			case c.messages <- m:
				confirmed()
			case <-ctx.Done():
				return
			}
		case <-changed:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (c *connection) Messages() <-chan protocol.Message { return c.messages }
func (c *connection) Close()                            { c.once.Do(c.cancel) }
