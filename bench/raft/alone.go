package raft

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/raft/wal"
)

// Alone is a state machine on one disk, without peers, in a topology: it receives
// messages in the turns of one goroutine.
type Alone struct {
	m       *machine
	wake    chan struct{}
	pending atomic.Int64

	outcomes int // since FeedProposals began
	failed   error
}

// OpenAlone opens a state machine. inTopology is true if the Feed methods will be called,
// and false if Propose will be called.
func OpenAlone(dir string, sync wal.Sync, inTopology bool) (*Alone, error) {
	a := &Alone{wake: make(chan struct{}, 1)}
	var host fsm.Host
	if inTopology {
		host = a
	}
	var err error
	a.m, err = openMachineIn(raft.Config{Dir: dir, Sync: sync}, countDefinition, host)
	return a, err
}

// BeginReply, EndReply, Wake and Stepped implement fsm.Host, the interface of the pool.
func (a *Alone) BeginReply()   { a.pending.Add(1) }
func (a *Alone) EndReply()     { a.pending.Add(-1) }
func (a *Alone) Stepped() bool { return false }
func (a *Alone) Wake() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// Outcome and Upcoming are the edges to the controller.
func (a *Alone) Outcome(o fsm.Outcome[count, struct{}]) {
	a.outcomes++
	if o.Err != nil && a.failed == nil {
		a.failed = o.Err
	}
}
func (*Alone) Upcoming(fsm.Upcoming[count]) {}

// Propose is for callers outside of a topology.
func (a *Alone) Propose(ctx context.Context, _ int) error {
	_, err := a.m.Propose(ctx, count{})
	return err
}

// Close stops the state machine.
func (a *Alone) Close() error { return a.m.Close() }

// FeedUpdates sends n updates, each at a time, with a commit in every message, and
// returns after all are applied.
func (a *Alone) FeedUpdates(n, each int) error {
	m := &fsm.Updates[count]{Updates: make([]count, each)}
	for ; n > 0; n -= each {
		m.Updates = m.Updates[:min(n, each)]
		if err := errors.Join(
			a.m.ReceiveUpdates(context.Background(), m),
			a.m.ReceiveCommit(context.Background(), nil),
			a.turn(false),
		); err != nil {
			return err
		}
	}
	return a.rest()
}

// FeedProposals sends n proposals, and returns after all have their outcomes.
func (a *Alone) FeedProposals(n int) error {
	want := a.outcomes + n
	for range n {
		if err := errors.Join(a.m.ReceiveProposal(context.Background(), new(fsm.Proposal[count])), a.turn(false)); err != nil {
			return err
		}
	}
	if err := a.rest(); err != nil {
		return err
	}
	if a.outcomes != want {
		return errors.New("some outcomes are missing")
	}
	return a.failed
}

// turn handles the replies, if there are any.
func (a *Alone) turn(wait bool) error {
	if wait {
		<-a.wake
	} else {
		select {
		case <-a.wake:
		default:
			return nil
		}
	}
	return a.m.Answer(a)
}

func (a *Alone) rest() error {
	for a.pending.Load() > 0 {
		if err := a.turn(true); err != nil {
			return err
		}
	}
	return nil
}

// Applied returns the number of updates that the state has seen.
func (a *Alone) Applied() (n uint64, err error) {
	err = a.m.Read(context.Background(), func(c *counter) { n = c.n })
	return n, err
}
