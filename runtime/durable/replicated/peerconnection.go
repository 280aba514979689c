package replicated

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/internal/fields"
)

// confirmTimeout bounds a call that confirms messages. A host that takes longer is most
// probably lost.
const confirmTimeout = 5 * time.Second

// peerConnection receives the messages of one call, and confirms them with further calls.
type peerConnection struct {
	peer     peer
	id       string
	messages chan protocol.Message
	cancel   context.CancelFunc // ends the call
	closed   chan struct{}
	once     sync.Once
	confirm  atomic.Bool   // messages count as delivered when the receiver confirms them
	count    atomic.Uint64 // of the messages that were confirmed
	changed  chan struct{} // receives when count has grown
}

var _ protocol.Confirmer = (*peerConnection)(nil)

// Connect implements protocol.Backend.
func (p peer) Connect(group, pid string) (protocol.Connection, error) {
	ctx, cancel := context.WithCancel(context.Background())
	c := &peerConnection{
		peer: p, id: rand.Text(), messages: make(chan protocol.Message), cancel: cancel,
		closed: make(chan struct{}), changed: make(chan struct{}, 1),
	}
	request := []byte{callConnect}
	for _, s := range []string{group, pid, c.id} {
		request = fields.AppendText(request, s)
	}
	go func() {
		defer close(c.messages)
		defer cancel()
		_ = p.call(ctx, p.name, request, func(part []byte) error { return c.receive(ctx, part) }) // Node.follow connects again
	}()
	go c.sendConfirmations(ctx)
	return c, nil
}

// receive passes a message to the receiver.
func (c *peerConnection) receive(ctx context.Context, part []byte) error {
	m, err := protocol.DecodeMessage(part)
	if err != nil {
		return err
	}
	select {
	case c.messages <- m:
	case <-ctx.Done():
		return ctx.Err()
	}
	if !c.confirm.Load() {
		c.Confirmed()
	}
	return nil
}

// sendConfirmations sends the count of the confirmed messages each time that it has grown.
// After Close it sends the last count before it ends the call, because the leader sends a
// message without a confirmation again.
func (c *peerConnection) sendConfirmations(ctx context.Context) {
	defer c.cancel()
	for sent, open := uint64(0), true; open; {
		select {
		case <-c.changed:
		case <-c.closed:
			open = false
		case <-ctx.Done():
			return
		}
		count := c.count.Load()
		if count == sent {
			continue
		}
		if err := c.sendConfirmation(ctx, count); err != nil {
			return // the leader waits for this confirmation: connect again
		}
		sent = count
	}
}

func (c *peerConnection) sendConfirmation(ctx context.Context, count uint64) error {
	ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	request := binary.AppendUvarint(fields.AppendText([]byte{callConfirmed}, c.id), count)
	return c.peer.call(ctx, c.peer.name, request, func([]byte) error { return nil })
}

func (c *peerConnection) Messages() <-chan protocol.Message { return c.messages }
func (c *peerConnection) Close()                            { c.once.Do(func() { close(c.closed) }) }

// Confirm implements protocol.Confirmer.
func (c *peerConnection) Confirm() { c.confirm.Store(true) }

// Confirmed implements protocol.Confirmer.
func (c *peerConnection) Confirmed() {
	c.count.Add(1)
	select {
	case c.changed <- struct{}{}:
	default: // sendConfirmations has not read the count yet
	}
}
