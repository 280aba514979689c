package fsm_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/topogen/topogen/runtime/fsm"
)

// naive is a Replicated by the book: everything is a list that is looked through
// from its beginning, and what fails never begins.
type naive struct {
	options  fsm.Options
	values   []int64
	upcoming []note
	sessions []*naiveSession // used longest ago first
	entry    fsm.Entry
	term     uint64
	checked  bool // no update breaks its promise: one that returns an error has changed nothing
}

type naiveSession struct {
	client, floor uint64
	results       map[uint64]outcome
}

// outcome is what a command ends with, as it can be compared.
type outcome struct {
	Client, Sequence uint64
	Index, Term      uint64
	Opened           uint64
	Err              string
	Panicked         bool
	Known            bool
	Rejected         bool   `json:"-"` // the error is errRejected, or wraps it
	NoResult         bool   `json:"-"` // it is ErrResult
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
	client, sequence, floor uint64
	note                    note
}

type kind int

const (
	open kind = iota
	update
	add
	commit
	revert
)

func (x *naive) run(o *order) outcome {
	out := outcomeOf(o.client, o.sequence, fsm.Applied{Index: x.entry.Index, Term: x.term})
	if o.kind == open {
		out.Sequence = 0
		out.Opened = x.entry.Index<<20 | uint64(x.entry.Position)
		x.sessions = append(x.sessions, &naiveSession{client: out.Opened, floor: 1, results: make(map[uint64]outcome)})
		x.forget()
		return out
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
	answer, err := x.do(o)
	if out.Data = string(answer); err != nil {
		out = out.with(err)
	}
	s.results[o.sequence] = out
	x.forget()
	return out
}

func (o outcome) with(err error) outcome {
	return outcomeOf(o.Client, o.Sequence, fsm.Applied{Index: o.Index, Term: o.Term, Err: err})
}

// session finds a client and makes it the newest.
func (x *naive) session(client uint64) *naiveSession {
	for i, s := range x.sessions {
		if s.client == client {
			x.sessions = append(slices.Delete(x.sessions, i, i+1), s)
			return s
		}
	}
	return nil
}

func (x *naive) forget() {
	for results := x.results(); len(x.sessions) > x.options.Sessions || results > x.options.Results; results = x.results() {
		x.sessions = x.sessions[1:]
	}
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
			return "", fmt.Errorf("%w: a fsm_test.answer of 65537 bytes, at most 65536", fsm.ErrResult)
		case unwritable:
			return "", fmt.Errorf("%w: a fsm_test.answer cannot be written: %w", fsm.ErrResult, errFailed)
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
