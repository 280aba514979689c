package replicated

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// confirmations are the confirmations of other nodes, by the ids of their connections to
// the engine of this node.
type confirmations struct {
	mu   sync.Mutex
	byID map[string]*confirmation
}

// confirmation is how many messages of a connection its receiver has confirmed.
type confirmation struct {
	count   atomic.Uint64
	changed chan struct{} // receives when count has grown
}

var errConnectionEnded = errors.New("replicated: the connection has ended")

// open adds a connection.
func (c *confirmations) open(id string) (*confirmation, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if id == "" || c.byID[id] != nil {
		return nil, fmt.Errorf("replicated: the id %.100q of a connection is empty or used", id)
	}
	if c.byID == nil {
		c.byID = make(map[string]*confirmation)
	}
	o := &confirmation{changed: make(chan struct{}, 1)}
	c.byID[id] = o
	return o, nil
}

func (c *confirmations) close(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.byID, id)
}

// add notes that the receiver has confirmed the first count messages of a connection.
func (c *confirmations) add(id string, count uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.byID[id]
	if o == nil {
		return errConnectionEnded
	}
	if count <= o.count.Load() {
		return nil // only a call that was late
	}
	o.count.Store(count)
	select {
	case o.changed <- struct{}{}:
	default: // wait has not read the count yet
	}
	return nil
}

// wait waits until the receiver has confirmed the first count messages, which are all that
// were sent.
func (o *confirmation) wait(ctx context.Context, count uint64) error {
	for o.count.Load() < count {
		select {
		case <-o.changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if got := o.count.Load(); got > count {
		return fmt.Errorf("replicated: %d messages were confirmed, and %d were sent", got, count)
	}
	return nil
}

// answerConnect sends messages to another node until the connection or the engine ends. The
// engine sends the last message to another connection if the node has not confirmed it.
func (n *Node) answerConnect(ctx context.Context, group, pid, id string, send func([]byte) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(n.ctx, cancel)()
	o, err := n.confirmations.open(id)
	if err != nil {
		return err
	}
	defer n.confirmations.close(id)
	c, err := n.Local().Connect(group, pid)
	if err != nil {
		return err
	}
	defer c.Close()
	confirmed := confirmer(c)
	for sent := uint64(1); ; sent++ {
		select {
		case m, ok := <-c.Messages():
			if !ok {
				return nil
			}
			if err := send(protocol.AppendMessage(nil, &m, "")); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := o.wait(ctx, sent); err != nil {
			return err
		}
		confirmed()
	}
}

// confirmer returns the function that confirms the message that a connection received last.
func confirmer(c protocol.Connection) (confirmed func()) {
	if f, ok := c.(protocol.Confirmer); ok {
		f.Confirm()
		return f.Confirmed
	}
	return func() {}
}
