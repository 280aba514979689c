package fsm_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/topogen/topogen/runtime/fsm"
)

// naive is a simple model of a Replicated: everything is in lists that are searched
// from the beginning, and a command that fails is never started.
type naive struct {
	options  fsm.Options
	values   []int64
	upcoming []note
	sessions []*naiveSession // least recently used first
	clock    time.Duration
	entry    fsm.Entry
	term     uint64
	checked  bool // an update that returns an error has changed nothing
}

type naiveSession struct {
	number, floor uint64
	opener        opener
	nonce         uint64
	used          time.Duration
	results       map[uint64]outcome
}

// opener is the client or node that opens a session.
type opener struct {
	client string
	node   uint64
}

// outcome is the outcome of a command, in a comparable form.
type outcome struct {
	Client, Sequence uint64
	Index, Term      uint64
	Opened           uint64
	Err              string
	Panicked         bool
	Known            bool
	Rejected         bool   `json:"-"` // the error is errRejected, or wraps it
	NoResult         bool   `json:"-"` // the error is ErrResult
	Data             string `json:"-"`
}

func outcomeOf(client, sequence uint64, a fsm.Applied) outcome {
	o := outcome{Client: client, Sequence: sequence, Index: a.Index, Term: a.Term, Opened: a.Client, Known: fsm.OutcomeKnown(a.Err), Data: a.Data}
	if a.Err != nil {
		o.Err, o.Panicked = a.Err.Error(), errors.Is(a.Err, fsm.ErrPanicked)
		o.Rejected, o.NoResult = errors.Is(a.Err, errRejected), errors.Is(a.Err, fsm.ErrResult)
	}
	return o
}

// order is a command as it is proposed.
type order struct {
	kind                    kind
	client, sequence, floor uint64 // client is the nonce if the command opens a session
	note                    note
	opener                  opener
}

type kind int

const (
	open kind = iota
	update
	add
	commit
	revert
)

// begin begins an entry, some time after the one before.
func (x *naive) begin(after time.Duration) {
	x.clock += min(after, max(x.options.SessionTTL/8, 1))
	x.sessions = slices.DeleteFunc(x.sessions, func(s *naiveSession) bool {
		return s.opener.node == 0 && x.clock-s.used > x.options.SessionTTL
	})
}

func (x *naive) run(o *order) outcome {
	out := outcomeOf(o.client, o.sequence, fsm.Applied{Index: x.entry.Index, Term: x.term})
	if o.kind == open {
		return x.open(o, out)
	}
	s := x.session(o.client)
	if s == nil {
		return out.with(fsm.ErrSessionExpired)
	}
	s.floor = max(s.floor, o.floor)
	for sequence := range s.results {
		if sequence < s.floor {
			delete(s.results, sequence)
		}
	}
	if o.sequence < s.floor {
		return out.with(fsm.ErrStale)
	}
	if o.sequence >= s.floor+uint64(x.options.Window) {
		return out.with(fsm.ErrWindow)
	}
	if known, ok := s.results[o.sequence]; ok {
		return known
	}
	if s.opener.node == 0 && x.results() >= x.options.Results && len(s.results) > x.options.Results/x.options.Sessions {
		s.results[o.sequence] = out.with(fmt.Errorf("%w: the session keeps more results than its share: raise its floor", fsm.ErrTooMany))
		return s.results[o.sequence]
	}
	answer, err := x.do(o)
	if out.Data = string(answer); err != nil {
		out = out.with(err)
	}
	s.results[o.sequence] = out
	return out
}

func (x *naive) open(o *order, out outcome) outcome {
	out.Sequence = 0
	var own []*naiveSession
	clients := 0
	for _, s := range x.sessions {
		if s.opener == o.opener {
			own = append(own, s)
		}
		if s.opener.node == 0 {
			clients++
		}
	}
	for _, s := range own {
		if s.nonce == o.client {
			out.Opened = x.session(s.number).number
			return out
		}
	}
	slices.SortFunc(own, func(a, b *naiveSession) int {
		return cmp.Or(cmp.Compare(a.used, b.used), cmp.Compare(a.number, b.number))
	})
	switch most := map[bool]int{false: 4, true: 2}[o.opener.node != 0]; {
	case len(own) == most, len(own) > 0 && o.opener.node == 0 && clients == x.options.Sessions:
		x.sessions = slices.DeleteFunc(x.sessions, func(s *naiveSession) bool { return s == own[0] })
	case o.opener.node == 0 && clients == x.options.Sessions:
		return out.with(fmt.Errorf("%w: there are %d sessions of clients, all used within %v", fsm.ErrTooMany, clients, x.options.SessionTTL))
	}
	out.Opened = x.entry.Index<<20 | uint64(x.entry.Position)
	x.sessions = append(x.sessions, &naiveSession{
		number: out.Opened, floor: 1, opener: o.opener, nonce: o.client, used: x.clock, results: make(map[uint64]outcome),
	})
	return out
}

func (o outcome) with(err error) outcome {
	return outcomeOf(o.Client, o.Sequence, fsm.Applied{Index: o.Index, Term: o.Term, Err: err})
}

// session finds a session and makes it the most recently used one.
func (x *naive) session(number uint64) *naiveSession {
	for i, s := range x.sessions {
		if s.number == number {
			x.sessions = append(slices.Delete(x.sessions, i, i+1), s)
			s.used = x.clock
			return s
		}
	}
	return nil
}

func (x *naive) results() (n int) {
	for _, s := range x.sessions {
		n += len(s.results)
	}
	return n
}

func (x *naive) do(o *order) (a answer, err error) {
	failed := fmt.Errorf("%w: %d", errFailed, o.note.value)
	if o.kind == update || o.kind == add {
		if o.kind == add && len(x.upcoming) == x.options.Upcoming {
			return "", fsm.ErrTooMany
		}
		switch o.note.how {
		case rejects:
			return "", errRejected
		case rejectsWrapped:
			return "", fmt.Errorf("wrapped: %w", errRejected)
		case fails:
			x.values = append(x.values, spoiled)
			return "", failed
		case tooMuch:
			return "", fmt.Errorf("%w: a fsm_test.answer must have at most 65536 bytes, got 65537", fsm.ErrResult)
		case unwritable:
			return "", fmt.Errorf("%w: a fsm_test.answer cannot be encoded: %w", fsm.ErrResult, errFailed)
		case panics:
			return "", &fsm.PanicError{Value: failed}
		}
		a = answer(strconv.Itoa(len(x.values)))
		x.values = append(x.values, o.note.value)
	}
	switch o.kind {
	case update, commit:
		x.upcoming = nil
	case add:
		x.upcoming = append(x.upcoming, o.note)
	case revert:
		values := x.values
		for _, n := range slices.Backward(x.upcoming) {
			last := len(values) - 1
			if values[last] != n.value {
				return "", fmt.Errorf("%d is undone, and the tape ends with %v", n.value, values)
			}
			switch failed := fmt.Errorf("%w: %d", errFailed, n.value); n.how {
			case failsRevert:
				return "", failed
			case rejectsRevert:
				return "", errRejected
			case panicsRevert:
				return "", &fsm.PanicError{Value: failed}
			}
			values = values[:last]
		}
		x.values, x.upcoming = values, nil
	}
	return a, nil
}
