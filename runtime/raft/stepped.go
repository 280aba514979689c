package raft

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/topogen/topogen/runtime/fsm"
)

// steppedNode replaces a Node when the topology runs under a Stepper. It is a group of
// one member, in memory, that always leads. A proposal is applied at once, in the
// goroutine of the caller, so no method waits.
type steppedNode struct {
	name    string
	machine StateMachine
	now     func() time.Time
	wake    func() // makes the pool call Answer, which returns err

	state    sync.RWMutex // held for writing while the state machine changes
	batch    fsm.Batch
	index    uint64 // of the last entry
	snapshot uint64 // index of the last entry that Snapshot covers
	client   uint64 // session of the proposals of this node; 0: none is open
	sequence uint64
	closed   bool
	err      error // why no more updates can be applied
}

// steppedTerm is the term of all entries: there is no other leader.
const steppedTerm = 1

func newSteppedNode(name string, machine StateMachine, host fsm.Host) *steppedNode {
	s := &steppedNode{name: name, machine: machine, wake: host.Wake, now: time.Now}
	if c, ok := host.(fsm.Clock); ok {
		s.now = c.Time
	}
	return s
}

// leadership says that this node leads.
func (s *steppedNode) leadership() fsm.Leadership {
	return fsm.Leadership{Term: steppedTerm, Leader: s.name, ID: MemberID(s.name), Here: true}
}

// close ends proposals. The state can still be read, because a test reads it after
// everything has ended.
func (s *steppedNode) close() {
	s.state.Lock()
	defer s.state.Unlock()
	s.closed = true
}

func (s *steppedNode) newCall() *call { return new(call) }

func (s *steppedNode) propose(ctx context.Context, kind Kind, c *call) (fsm.Applied, error) {
	return s.command(ctx, kind, c.data)
}

// command applies a command in the node's own session.
func (s *steppedNode) command(ctx context.Context, kind Kind, data []byte) (fsm.Applied, error) {
	s.state.Lock()
	defer s.state.Unlock()
	if s.client == 0 {
		opened, err := s.apply(ctx, func(b *fsm.Batch) { b.OpenNode(MemberID(s.name), s.index+1) })
		if err != nil {
			return opened, err
		}
		s.client, s.sequence = opened.Client, 0
	}
	s.sequence++
	client, sequence := s.client, s.sequence
	return s.apply(ctx, func(b *fsm.Batch) {
		switch kind {
		case Update:
			b.Update(client, sequence, sequence, data)
		case Add:
			b.Add(client, sequence, sequence, data)
		case Commit:
			b.Commit(client, sequence, sequence)
		case Revert:
			b.Revert(client, sequence, sequence)
		}
	})
}

// proposeAs applies an update in a client's session. With sequence 0 it opens a session
// for the client that data names.
func (s *steppedNode) proposeAs(ctx context.Context, client, sequence, floor uint64, data []byte) (fsm.Applied, error) {
	s.state.Lock()
	defer s.state.Unlock()
	return s.apply(ctx, func(b *fsm.Batch) {
		if sequence == 0 {
			b.Open(string(data), client)
		} else {
			b.Update(client, sequence, floor, data)
		}
	})
}

// apply applies an entry with one command. The caller holds the lock.
func (s *steppedNode) apply(ctx context.Context, command func(*fsm.Batch)) (a fsm.Applied, err error) {
	switch {
	case s.err != nil:
		return a, fmt.Errorf("%w: %w", fsm.ErrStopped, s.err)
	case s.closed:
		return a, errNodeStopped
	case ctx.Err() != nil:
		return a, fmt.Errorf("raft: the update was not proposed: %w", ctx.Err())
	}
	s.batch.Reset(s.now().UnixNano())
	command(&s.batch)
	s.index++
	if err := s.machine.Apply(s.index, steppedTerm, s.batch.Bytes(), func(_, _ uint64, r fsm.Applied) { a = r }); err != nil {
		s.err = fmt.Errorf("raft: entry %d: %w", s.index, err)
		s.wake()
		return fsm.Applied{}, fmt.Errorf("%w: %w", fsm.ErrUnknown, s.err)
	}
	return a, a.Err
}

func (s *steppedNode) read(ctx context.Context, _ bool, f func()) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("raft: the read was not answered: %w", err)
	}
	s.view(f)
	return nil
}

func (s *steppedNode) view(f func()) {
	s.state.RLock()
	defer s.state.RUnlock()
	f()
}

// wait never waits, because no update could be applied during the wait.
func (s *steppedNode) wait(_ context.Context, index uint64) error {
	s.state.RLock()
	defer s.state.RUnlock()
	if index > s.index {
		return fmt.Errorf("raft: entry %d is not applied yet, the last applied entry is %d; under a Stepper, Wait does not wait", index, s.index)
	}
	return nil
}

func (s *steppedNode) leader() string { return s.name }

// Status returns the status of a group of one member.
func (s *steppedNode) Status() Status {
	s.state.RLock()
	defer s.state.RUnlock()
	id := MemberID(s.name)
	status := Status{
		Node: s.name, ID: id, Role: "leader", Leader: s.name, Term: steppedTerm,
		Commit: s.index, Applied: s.index, First: 1, Last: s.index, Snapshot: s.snapshot,
		Members: []MemberStatus{{Member: Member{ID: id, Name: s.name}, Match: s.index, Active: true}},
	}
	if s.closed || s.err != nil {
		status.Role, status.Leader = "stopped", ""
	}
	return status
}

// Err returns the error that ends the topology.
func (s *steppedNode) Err() error {
	s.state.RLock()
	defer s.state.RUnlock()
	return s.err
}

var errStepped = fmt.Errorf("%w: under a Stepper a state machine is the only member of its group", ErrMembers)

func (s *steppedNode) ChangeMembers(context.Context, ...Change) error { return errStepped }

func (s *steppedNode) TransferLeader(_ context.Context, to string) error {
	if to == s.name {
		return nil
	}
	return errStepped
}

// Snapshot encodes the state, so that errors of its codec are found, and drops the
// result.
func (s *steppedNode) Snapshot(ctx context.Context) (index uint64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	s.state.Lock()
	defer s.state.Unlock()
	write, _, err := s.machine.Snapshot()
	if err == nil {
		err = write(io.Discard)
	}
	if err != nil {
		return s.index, err
	}
	s.snapshot = s.index
	return s.index, nil
}
