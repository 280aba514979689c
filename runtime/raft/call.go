package raft

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/topogen/topogen/runtime/fsm"
)

// call is a proposal or a read that a goroutine waits for. Calls are reused, so that a
// call costs no allocation.
type call struct {
	calls  *sync.Pool    // pool that the call returns to; nil: none
	slots  *slots        // where the call holds a slot; nil: it holds none
	answer chan struct{} // room for one
	a      fsm.Applied
	data   []byte
	phase  atomic.Uint32

	number uint64 // number of the proposal; only the node's loop uses it
}

const (
	callWaiting uint32 = iota
	callAnswered
	callAbandoned // the caller has stopped waiting
)

// newCall returns an unused call. Each node has its own pool, because all its goroutines
// may be in one bubble of testing/synctest.
func (n *Node) newCall() *call {
	if c, ok := n.callPool.Get().(*call); ok {
		return c
	}
	return &call{calls: &n.callPool, answer: make(chan struct{}, 1)}
}

func (c *call) proposed(number uint64) { c.number = number }

// Done is called by the node's loop or by the applier.
func (c *call) Done(a fsm.Applied) {
	c.a = a
	if c.slots != nil {
		c.slots.give()
	}
	if c.phase.CompareAndSwap(callWaiting, callAnswered) {
		c.answer <- struct{}{}
	}
}

// release returns a call to its pool. No other goroutine may refer to the call any more.
func (c *call) release() {
	c.slots, c.a = nil, fsm.Applied{}
	c.phase.Store(callWaiting)
	if c.calls != nil {
		c.calls.Put(c)
	}
}

// propose waits for a slot and then for the answer. The call owns its data.
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
	if err := n.await(ctx, c); err != nil {
		n.abandon(c, func(core *Core) bool {
			found, _ := core.Abandon(c.number, c)
			return found
		})
		return fsm.Applied{}, err
	}
	return c.result()
}

// await waits for the answer to a call. If ctx ends first, await returns an error, and
// the caller must call abandon.
func (n *Node) await(ctx context.Context, c *call) (err error) {
	ended := ctx.Done()
	if ended == nil {
		<-c.answer // cheaper than a select
		return nil
	}
	select {
	case <-c.answer:
	case <-ended:
		if c.phase.CompareAndSwap(callWaiting, callAbandoned) {
			return fmt.Errorf("%w: %w", fsm.ErrUnknown, ctx.Err())
		}
		<-c.answer
	}
	return nil
}

// abandon removes a call from the core after its caller has stopped waiting. abandon does
// not wait for the node's loop, because the loop may be waiting for its disk. remove
// removes the call and reports whether the call was in the core. If it was not, the call
// has been answered.
func (n *Node) abandon(c *call, remove func(*Core) (found bool)) {
	_ = n.put(func(b *inbox) {
		b.calls = append(b.calls, func(core *Core) {
			if remove(core) {
				c.slots.give()
			}
		})
	})
}

// result returns the answer of a call, and releases the call.
func (c *call) result() (fsm.Applied, error) {
	a := c.a
	c.release()
	return a, a.Err
}

// acquire takes a slot for a proposal.
func (n *Node) acquire(ctx context.Context) error { return n.proposalSlots.take(ctx, n) }

// read waits until the state machine holds all updates that were committed before the
// call of read. Then it calls f. The state machine does not change while f runs.
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
