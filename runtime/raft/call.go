package raft

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/topogen/topogen/runtime/fsm"
)

// call is a proposal or a read that a goroutine waits for. Calls are used again,
// so that one costs no allocation.
type call struct {
	calls  *sync.Pool    // that it goes back to; nil: none
	slots  chan struct{} // where it has one; nil: nowhere
	answer chan struct{} // room for one
	a      fsm.Applied
	data   []byte
	phase  atomic.Uint32

	number uint64 // of the proposal; the node's loop sets and reads it
}

const (
	callWaits uint32 = iota
	callAnswered
	callLeft // who asked has gone
)

// newCall returns one that is not used. They are kept by the node, whose goroutines may
// all be in one bubble of testing/synctest.
func (n *Node) newCall() *call {
	if c, ok := n.calls.Get().(*call); ok {
		return c
	}
	return &call{calls: &n.calls, answer: make(chan struct{}, 1)}
}

func (c *call) proposed(number uint64) { c.number = number }

// Done is called by the node's loop, or by its keeper.
func (c *call) Done(a fsm.Applied) {
	c.a = a
	if c.slots != nil {
		<-c.slots
	}
	if c.phase.CompareAndSwap(callWaits, callAnswered) {
		c.answer <- struct{}{}
	}
}

// release gives back a call that nobody else knows any more.
func (c *call) release() {
	c.slots, c.a = nil, fsm.Applied{}
	c.phase.Store(callWaits)
	if c.calls != nil {
		c.calls.Put(c)
	}
}

// propose waits for a slot and then for the answer. data belongs to the call.
func (n *Node) propose(ctx context.Context, kind Kind, c *call) (fsm.Applied, error) {
	if err := n.acquire(ctx); err != nil {
		c.release()
		return fsm.Applied{}, err
	}
	c.slots = n.slots
	if err := n.putProposal(proposal{kind, c.data, c}); err != nil {
		<-n.slots
		c.release()
		return fsm.Applied{}, err
	}
	return n.await(ctx, c, func(core *Core) bool {
		found, _ := core.Abandon(c.number, c)
		return found
	})
}

// await waits for the answer to a call. Who stops waiting leaves the call to the node,
// whose loop may be waiting for its disk. abandon reports whether the core has forgotten
// the call; else it is answered.
func (n *Node) await(ctx context.Context, c *call, abandon func(*Core) (found bool)) (fsm.Applied, error) {
	left := ctx.Done()
	if left == nil {
		<-c.answer // which costs less than to wait for either
		a := c.a
		c.release()
		return a, a.Err
	}
	select {
	case <-c.answer:
	case <-left:
		if c.phase.CompareAndSwap(callWaits, callLeft) {
			_ = n.put(func(b *inbox) {
				b.calls = append(b.calls, func(core *Core) {
					if abandon(core) {
						<-c.slots
					}
				})
			})
			return fsm.Applied{}, fmt.Errorf("%w: %w", fsm.ErrUnknown, ctx.Err())
		}
		<-c.answer
	}
	a := c.a
	c.release()
	return a, a.Err
}

// acquire takes a slot for a proposal.
func (n *Node) acquire(ctx context.Context) error { return n.room(ctx, n.slots) }

func (n *Node) room(ctx context.Context, slots chan struct{}) error {
	select {
	case slots <- struct{}{}:
		return nil
	default:
	}
	select {
	case slots <- struct{}{}:
		return nil
	case <-n.done:
		return n.err
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", fsm.ErrTooMany, ctx.Err())
	}
}

// read waits until the state machine holds all that was committed before, and
// calls f while nothing changes it.
func (n *Node) read(ctx context.Context, lease bool, f func()) error {
	if err := n.room(ctx, n.asking); err != nil {
		return err
	}
	c := n.newCall()
	c.slots = n.asking
	if err := n.put(func(b *inbox) { b.reads = append(b.reads, reading{c, lease}) }); err != nil {
		<-n.asking
		c.release()
		return err
	}
	if _, err := n.await(ctx, c, func(core *Core) bool { return core.AbandonRead(c) }); err != nil {
		if errors.Is(err, fsm.ErrUnknown) && ctx.Err() != nil {
			return fmt.Errorf("raft: the read got no answer: %w", ctx.Err())
		}
		return err
	}
	n.state.RLock()
	defer n.state.RUnlock()
	f()
	return nil
}
