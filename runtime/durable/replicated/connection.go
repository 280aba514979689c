package replicated

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"

	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
)

// connection receives the messages of a process from whichever node leads.
type connection struct {
	messages  chan protocol.Message
	cancel    context.CancelFunc
	once      sync.Once
	confirm   atomic.Bool   // messages count as delivered when the receiver confirms them
	confirmed chan struct{} // receives when the receiver has passed a message on
}

var _ protocol.Confirmer = (*connection)(nil)

// Connect implements protocol.Backend. The connection follows the leader. A process has
// one connection to a node: a new one closes the one before.
func (n *Node) Connect(group, pid string) (protocol.Connection, error) {
	if err := engine.CheckNames(group, pid); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(n.ctx)
	c := &connection{messages: make(chan protocol.Message), cancel: cancel, confirmed: make(chan struct{}, 1)}
	name := [2]string{group, pid}
	n.mu.Lock()
	defer n.mu.Unlock()
	before := n.connections[name]
	if before == nil && len(n.connections) >= cmp.Or(n.config.Engine.ConnectionsMax, engine.ConnectionsMaxDefault) {
		cancel()
		return nil, engine.ErrConnections
	}
	if before != nil {
		before.Close()
	}
	n.connections[name] = c
	go func() {
		n.follow(ctx, c, group, pid)
		n.forget(name, c)
	}()
	return c, nil
}

// forget removes a connection that has ended.
func (n *Node) forget(name [2]string, c *connection) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.connections[name] == c {
		delete(n.connections, name)
	}
}

// follow passes the messages on, from one leader after the other. It logs the first of the
// failures in a row.
func (n *Node) follow(ctx context.Context, c *connection, group, pid string) {
	defer close(c.messages)
	logged := false
	for ctx.Err() == nil {
		b, changed, err := n.backend(false)
		if b != nil {
			var from protocol.Connection
			if from, err = b.Connect(group, pid); err == nil {
				logged = false
				pass(ctx, c, from, changed.Done())
			}
		}
		if err != nil && !logged {
			logged = true
			n.log.Warn("durable: cannot receive messages from the leader, trying again", "group", group, "pid", pid, "error", err)
		}
		wait(ctx, retryInterval)
	}
}

// pass passes messages on until the connection or its backend ends, or the leader may have
// changed.
func pass(ctx context.Context, c *connection, from protocol.Connection, changed <-chan struct{}) {
	defer from.Close()
	confirmed := confirmer(from) // an engine sends a message that was not used to another connection
	for {
		select {
		case m, ok := <-from.Messages():
			if !ok {
				if r, ok := from.(interface{ Replaced() bool }); ok && r.Replaced() {
					c.Close() // both would replace each other again and again
				}
				return
			}
			select {
			case c.messages <- m:
			case <-ctx.Done():
				return
			}
			if !c.isConfirmed(ctx) {
				return
			}
			confirmed()
		case <-changed:
			return
		case <-ctx.Done():
			return
		}
	}
}

// isConfirmed waits until the receiver has confirmed a message, if it does so. It returns
// false if the connection was closed before.
func (c *connection) isConfirmed(ctx context.Context) bool {
	if !c.confirm.Load() {
		return true
	}
	select {
	case <-c.confirmed:
		return true
	case <-ctx.Done():
	}
	select { // both may have happened
	case <-c.confirmed:
		return true
	default:
		return false
	}
}

func (c *connection) Messages() <-chan protocol.Message { return c.messages }
func (c *connection) Close()                            { c.once.Do(c.cancel) }

// Confirm implements protocol.Confirmer.
func (c *connection) Confirm() { c.confirm.Store(true) }

// Confirmed implements protocol.Confirmer.
func (c *connection) Confirmed() {
	select {
	case c.confirmed <- struct{}{}:
	default: // the connection has ended
	}
}
