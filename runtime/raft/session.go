package raft

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/topogen/topogen/runtime/fsm"
)

const (
	clientNameMax = 64   // bytes, as package fsm takes them
	inFlightMax   = 1024 // requests of a Session between the oldest without an outcome and the newest: a quarter of what the group remembers of one
)

// Session asks for updates that are applied once, also where it asks again. Any
// goroutine may use it, and many requests may be under way at once.
//
// It belongs to a client, which has at most 4: another one ends the one of them that
// was used longest ago. It ends, too, when it was not used for [Config].SessionTTL;
// its requests then end with fsm.ErrSessionExpired. No other client ends it.
type Session[S, U, R any] struct {
	m      *Machine[S, U, R]
	number uint64

	mu    sync.Mutex
	next  uint64              // sequence of the next request
	open  map[uint64]struct{} // sequences from floor on whose outcome is wanted
	floor uint64              // the lowest of them, or next
	room  chan struct{}       // closed when floor rises
}

// OpenSession opens a session of a client, whose name has 1 to 64 bytes: that of a
// host, a program and an instance, for example. Where as many sessions are open as the
// group remembers, 10,000, and each was used within Config.SessionTTL, it ends another
// one of the same client, or fails with an error that matches fsm.ErrTooMany.
func (m *Machine[S, U, R]) OpenSession(ctx context.Context, client string) (*Session[S, U, R], error) {
	if client == "" || len(client) > clientNameMax {
		return nil, fmt.Errorf("raft: the name of a client must have 1 to %d bytes, got %d", clientNameMax, len(client))
	}
	e, err := m.engine()
	if err != nil {
		return nil, err
	}
	a, err := e.proposeAs(ctx, nonce(), 0, 0, []byte(client))
	if err != nil {
		return nil, err
	}
	return &Session[S, U, R]{m: m, number: a.Client, next: 1, floor: 1, open: make(map[uint64]struct{}), room: make(chan struct{})}, nil
}

// Number is the session's number, for [Machine.ProposeAs].
func (s *Session[S, U, R]) Number() uint64 { return s.number }

// Propose applies an update, and returns what its method Update has returned. After
// an error that does not say the outcome, see fsm.OutcomeKnown, the update may have
// been applied: use [Session.Request] to ask for it again.
func (s *Session[S, U, R]) Propose(ctx context.Context, u U) (R, error) {
	r, err := s.ProposeResult(ctx, u)
	return r.Value, err
}

// ProposeResult is Propose, and says as well where in the log the update is.
func (s *Session[S, U, R]) ProposeResult(ctx context.Context, u U) (fsm.Result[R], error) {
	q, err := s.Request(ctx, u)
	if err != nil {
		return s.m.result(fsm.Applied{Err: err})
	}
	defer q.Drop()
	return q.Do(ctx)
}

// Request is an update that a session asks for, again and again until its outcome is
// known. One goroutine at a time may use it.
type Request[S, U, R any] struct {
	s        *Session[S, U, R]
	sequence uint64
	data     []byte
	doubt    bool // it may be in the log
	done     bool
}

// Request takes the next number of the session for an update. It waits for room, as
// long as ctx lives: so many numbers may lie between the oldest request without an
// outcome and the newest. Each request ends with Do, when that says the outcome, or
// with Drop.
func (s *Session[S, U, R]) Request(ctx context.Context, u U) (*Request[S, U, R], error) {
	data, err := s.m.encode(nil, u)
	if err != nil {
		return nil, err
	}
	for {
		s.mu.Lock()
		if s.next-s.floor < inFlightMax {
			q := &Request[S, U, R]{s: s, sequence: s.next, data: data}
			s.open[s.next] = struct{}{}
			s.next++
			s.mu.Unlock()
			return q, nil
		}
		room := s.room
		s.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %d requests of the session have no outcome: %w", fsm.ErrTooMany, inFlightMax, ctx.Err())
		}
	}
}

// Sequence is the request's number in its session, for [Machine.ProposeAs].
func (q *Request[S, U, R]) Sequence() uint64 { return q.sequence }

// Do asks for the update. After an error that does not say the outcome it may be
// called again: the update is applied once. After any other end it must not.
func (q *Request[S, U, R]) Do(ctx context.Context) (fsm.Result[R], error) {
	if q.done {
		return q.s.m.result(fsm.Applied{Err: errRequestDone})
	}
	e, err := q.s.m.engine()
	var a fsm.Applied
	if err == nil {
		a, err = e.proposeAs(ctx, q.s.number, q.sequence, q.s.lowest(), q.data)
	}
	switch answered := a.Index != 0; {
	case answered && fsm.OutcomeKnown(err):
		q.Drop()
	case !fsm.OutcomeKnown(err):
		q.doubt = true
	case q.doubt: // this time it was not proposed; what became of it before, nobody says
		err = fmt.Errorf("%w: %w", fsm.ErrUnknown, err)
	}
	a.Err = err
	return q.s.m.result(a)
}

var errRequestDone = errors.New("raft: the request has ended")

// Drop says that nobody wants the outcome any more. After an outcome it does nothing.
func (q *Request[S, U, R]) Drop() {
	if !q.done {
		q.done = true
		q.s.settle(q.sequence)
	}
}

// lowest is the lowest sequence whose outcome is wanted.
func (s *Session[S, U, R]) lowest() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.floor
}

// settle forgets a request, and raises the floor where it was the oldest.
func (s *Session[S, U, R]) settle(sequence uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, sequence)
	before := s.floor
	for s.floor < s.next {
		if _, open := s.open[s.floor]; open {
			break
		}
		s.floor++
	}
	if s.floor != before {
		close(s.room)
		s.room = make(chan struct{})
	}
}

// ProposeAs is Propose for a client that keeps its numbers itself, for example on its
// disk, and may ask again at this node or another, after any error and after a crash
// of its own: the same session and sequence are applied once, and answered the same.
// Sequences begin at 1. floor is the lowest sequence whose answer the client still
// wants: what lies below it is forgotten, and at most 4,096 above it are remembered. A
// client that asks for one update after the other gives its sequence as the floor.
func (m *Machine[S, U, R]) ProposeAs(ctx context.Context, session, sequence, floor uint64, u U) (fsm.Result[R], error) {
	e, err := m.engine()
	if err == nil && (floor == 0 || floor > sequence) {
		err = fmt.Errorf("raft: the sequence must be at least 1 and not below the floor, got sequence %d and floor %d", sequence, floor)
	}
	if err != nil {
		return m.result(fsm.Applied{Err: err})
	}
	data, err := m.encode(nil, u)
	if err != nil {
		return m.result(fsm.Applied{Err: err})
	}
	a, err := e.proposeAs(ctx, session, sequence, floor, data)
	a.Err = err
	return m.result(a)
}

// proposeAs proposes in a client's session; with sequence 0 it opens one of the client
// that data names.
func (n *Node) proposeAs(ctx context.Context, client, sequence, floor uint64, data []byte) (fsm.Applied, error) {
	if err := n.acquire(ctx); err != nil {
		return fsm.Applied{}, err
	}
	c := &call{slots: n.proposalSlots, answer: make(chan struct{}, 1)} // not from the pool: the core compares waiters
	if err := n.put(func(b *inbox) {
		b.calls = append(b.calls, func(core *Core) {
			if err := core.ProposeAs(client, sequence, floor, data, c); err != nil {
				c.Done(fsm.Applied{Err: err})
			}
		})
	}); err != nil {
		n.proposalSlots.give()
		return fsm.Applied{}, err
	}
	if left := n.await(ctx, c); left != nil {
		n.abandon(c, func(core *Core) bool {
			found, _ := core.AbandonAs(client, sequence, c)
			return found
		})
		return fsm.Applied{}, left
	}
	return c.result()
}
