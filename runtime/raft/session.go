package raft

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/topogen/topogen/runtime/fsm"
)

const (
	clientNameMax = 64   // bytes, the limit of package fsm
	inFlightMax   = 1024 // requests of a Session, from the oldest one without an outcome to the newest: a quarter of the outcomes that the group keeps
)

// Session proposes updates that are applied once, even if they are proposed again. Any
// goroutine may use it, and many requests may run at the same time.
//
// A client has at most 4 sessions. Opening another one ends the session of this client
// that was unused for the longest time. A session also ends when it was not used for
// [Config].SessionTTL. Requests of an ended session get fsm.ErrSessionExpired. Other
// clients cannot end it.
type Session[S, U, R any] struct {
	m      *Machine[S, U, R]
	number uint64

	mu    sync.Mutex
	next  uint64              // sequence of the next request
	open  map[uint64]struct{} // sequences from floor on whose outcome is not known and not dropped
	floor uint64              // the lowest sequence in open, or next
	room  chan struct{}       // closed when floor rises
}

// OpenSession opens a session for a client. The name of the client has 1 to 64 bytes, for
// example the names of its host and program and an instance number. The group remembers
// 10,000 sessions. If all of them are open and were used within Config.SessionTTL,
// OpenSession ends another session of the same client, or fails with an error that
// matches fsm.ErrTooMany.
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

// Number returns the session's number, for [Machine.ProposeAs].
func (s *Session[S, U, R]) Number() uint64 { return s.number }

// Propose applies an update, and returns the result of its method Update. If the outcome
// is unknown after an error, see fsm.OutcomeKnown, the update may have been applied. Use
// [Session.Request] to propose it again safely.
func (s *Session[S, U, R]) Propose(ctx context.Context, u U) (R, error) {
	r, err := s.ProposeResult(ctx, u)
	return r.Value, err
}

// ProposeResult is like Propose, and also returns the update's place in the log.
func (s *Session[S, U, R]) ProposeResult(ctx context.Context, u U) (fsm.Result[R], error) {
	q, err := s.Request(ctx, u)
	if err != nil {
		return s.m.result(fsm.Applied{Err: err})
	}
	defer q.Drop()
	return q.Do(ctx)
}

// Request is an update that a session can propose repeatedly until its outcome is known.
// Only one goroutine at a time may use it.
type Request[S, U, R any] struct {
	s         *Session[S, U, R]
	sequence  uint64
	data      []byte
	uncertain bool // the update may be in the log
	done      bool
}

// Request reserves the next sequence number of the session for an update. If too many
// numbers lie between the oldest request without an outcome and the newest one, Request
// waits until ctx ends. Each request must end with a Do that returns the outcome, or with
// Drop.
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

// Sequence returns the request's number in its session, for [Machine.ProposeAs].
func (q *Request[S, U, R]) Sequence() uint64 { return q.sequence }

// Do proposes the update and returns the outcome. After an error with an unknown outcome,
// Do may be called again: the update is applied at most once. Do must not be called after
// the outcome is known.
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
		q.uncertain = true
	case q.uncertain: // not proposed this time, but an earlier attempt may have succeeded
		err = fmt.Errorf("%w: %w", fsm.ErrUnknown, err)
	}
	a.Err = err
	return q.s.m.result(a)
}

var errRequestDone = errors.New("raft: the request has ended")

// Drop gives up the outcome. If the outcome is known, it does nothing.
func (q *Request[S, U, R]) Drop() {
	if !q.done {
		q.done = true
		q.s.settle(q.sequence)
	}
}

// lowest returns the lowest sequence whose outcome may still be asked for.
func (s *Session[S, U, R]) lowest() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.floor
}

// settle removes a request, and raises the floor if the request was the oldest.
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

// ProposeAs is Propose for a client that keeps its own sequence numbers, for example on
// its disk. The client may repeat a proposal at any node, after any error and after a
// crash. Updates with the same session and sequence are applied once, and get the same
// answer. Sequences begin at 1. floor is the lowest sequence whose answer the client may
// still ask for: answers below it are dropped, and at most 4,096 above it are kept. A
// client with one update at a time passes its sequence as the floor.
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

// proposeAs proposes in a client's session. With sequence 0 it opens a session for the
// client that data names.
func (n *Node) proposeAs(ctx context.Context, client, sequence, floor uint64, data []byte) (fsm.Applied, error) {
	if err := n.acquire(ctx); err != nil {
		return fsm.Applied{}, err
	}
	c := &call{slots: n.proposalSlots, answer: make(chan struct{}, 1)} // not from the pool, because the core compares waiters
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
	if err := n.await(ctx, c); err != nil {
		n.abandon(c, func(core *Core) bool {
			found, _ := core.AbandonAs(client, sequence, c)
			return found
		})
		return fsm.Applied{}, err
	}
	return c.result()
}
