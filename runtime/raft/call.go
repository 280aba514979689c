package raft

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/topogen/topogen/runtime/fsm"
)

// call is a proposal or a read that a goroutine waits for. Calls are used again,
// so that one costs no allocation.
type call struct {
	calls  *sync.Pool    // that it goes back to; nil: none
	slots  *slots        // where it has one; nil: nowhere
	answer chan struct{} // room for one
	a      fsm.Applied
	data   []byte
	phase  atomic.Uint32

	number uint64 // of the proposal; the node's loop sets and reads it
}

const (
	callWaiting uint32 = iota
	callAnswered
	callAbandoned // who asked has gone
)

// newCall returns one that is not used. They are kept by the node, whose goroutines may
// all be in one bubble of testing/synctest.
func (n *Node) newCall() *call {
	if c, ok := n.callPool.Get().(*call); ok {
		return c
	}
	return &call{calls: &n.callPool, answer: make(chan struct{}, 1)}
}

func (c *call) proposed(number uint64) { c.number = number }

// Done is called by the node's loop, or by its applier.
func (c *call) Done(a fsm.Applied) {
	c.a = a
	if c.slots != nil {
		c.slots.give()
	}
	if c.phase.CompareAndSwap(callWaiting, callAnswered) {
		c.answer <- struct{}{}
	}
}

// release gives back a call that nobody else knows any more.
func (c *call) release() {
	c.slots, c.a = nil, fsm.Applied{}
	c.phase.Store(callWaiting)
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
	c.slots = n.proposalSlots
	if err := n.putProposal(proposal{kind, c.data, c}); err != nil {
		n.proposalSlots.give()
		c.release()
		return fsm.Applied{}, err
	}
	if left := n.await(ctx, c); left != nil {
		n.abandon(c, func(core *Core) bool {
			found, _ := core.Abandon(c.number, c)
			return found
		})
		return fsm.Applied{}, left
	}
	return c.result()
}

// await waits for the answer to a call. It returns an error where ctx has ended before:
// then the call is to be left.
func (n *Node) await(ctx context.Context, c *call) (left error) {
	over := ctx.Done()
	if over == nil {
		<-c.answer // which costs less than to wait for either
		return nil
	}
	select {
	case <-c.answer:
	case <-over:
		if c.phase.CompareAndSwap(callWaiting, callAbandoned) {
			return fmt.Errorf("%w: %w", fsm.ErrUnknown, ctx.Err())
		}
		<-c.answer
	}
	return nil
}

// leave gives a call that nobody waits for to the node, whose loop may be waiting for its
// disk. abandon reports whether the core has forgotten the call; else it is answered.
func (n *Node) abandon(c *call, abandon func(*Core) (found bool)) {
	_ = n.put(func(b *inbox) {
		b.calls = append(b.calls, func(core *Core) {
			if abandon(core) {
				c.slots.give()
			}
		})
	})
}

// end takes the answer out of a call, which it releases.
func (c *call) result() (fsm.Applied, error) {
	a := c.a
	c.release()
	return a, a.Err
}

// acquire takes a slot for a proposal.
func (n *Node) acquire(ctx context.Context) error { return n.proposalSlots.take(ctx, n) }

// read waits until the state machine holds all that was committed before, and
// calls f while nothing changes it.
func (n *Node) read(ctx context.Context, lease bool, f func()) error {
	if err := n.readSlots.take(ctx, n); err != nil {
		return err
	}
	c := n.newCall()
	c.slots = n.readSlots
	if err := n.put(func(b *inbox) { b.reads = append(b.reads, pendingRead{c, lease}) }); err != nil {
		n.readSlots.give()
		c.release()
		return err
	}
	if n.await(ctx, c) != nil {
		n.abandon(c, func(core *Core) bool { return core.AbandonRead(c) })
		return fmt.Errorf("raft: the read was not answered: %w", ctx.Err())
	}
	if _, err := c.result(); err != nil {
		return err
	}
	n.state.RLock()
	defer n.state.RUnlock()
	f()
	return nil
}
