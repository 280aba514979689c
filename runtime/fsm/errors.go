package fsm

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// Errors of a proposal, in addition to the errors of Update. Each one says whether the
// outcome is known, see [OutcomeKnown].
var (
	// ErrUnknown means that the answer was lost: by a crash, by a partition, or because
	// the caller's context ended. The update may have been applied, or may be applied
	// later. Only the same (client, sequence) may be proposed again. The outcome is not
	// known.
	ErrUnknown = errors.New("fsm: the outcome is not known")
	// ErrSessionExpired means that the session does not exist. It was never opened, or was
	// not used for too long, or its client has opened others since. The command was not
	// applied now, but an earlier command with the same sequence may have been. The outcome
	// is not known.
	ErrSessionExpired = errors.New("fsm: session has expired")
	// ErrStale means that the sequence is below the session's floor, so its result was
	// forgotten. The outcome is not known.
	ErrStale = errors.New("fsm: the client no longer waits for this sequence")
	// ErrWindow means that the sequence is further above the session's floor than a session
	// remembers. The command was not applied, but another one with the same sequence may be
	// applied later. The outcome is not known.
	ErrWindow = errors.New("fsm: the client waits for too many results")

	// ErrNotLeader means that another node leads, see [NotLeader]. The update was not
	// applied.
	ErrNotLeader = errors.New("fsm: not the leader")
	// ErrTooMany means that the state machine has too many pending proposals, sessions or
	// results. The update was not applied. It may be proposed again later.
	ErrTooMany = errors.New("fsm: too many pending proposals, sessions or results")
	// ErrTooLarge means that the update is larger than an entry may be. It was not applied.
	ErrTooLarge = errors.New("fsm: update is too large")
	// ErrResult means that the result of Update is larger than a session remembers, or that
	// its codec cannot write it. The update was not applied.
	ErrResult = errors.New("fsm: the result of the update cannot be kept")
	// ErrNotRunning means that the state machine has not been started. The update was not
	// applied.
	ErrNotRunning = errors.New("fsm: the state machine is not running: call it after Start, or while the topology runs")
	// ErrStopped means that the state machine was closed or has failed. The update was not
	// applied.
	ErrStopped = errors.New("fsm: the state machine has stopped")
	// ErrPanicked means that the update panicked, see [PanicError]. It was not applied.
	ErrPanicked = errors.New("fsm: update panicked")
)

// Errors that stop a state machine with a log. It cannot apply anything after them.
var (
	// ErrDamaged means that an entry or a snapshot was not written by this package.
	ErrDamaged = errors.New("fsm: damaged")
	// ErrDiverged means that an update had another outcome when it was applied again to the
	// same state, so Update depends on more than the update and the state.
	ErrDiverged = errors.New("fsm: an update had another outcome when it was applied again: Update must depend only on the state and the update")
	// ErrApplied means that the index of an entry is not above the index of the last entry.
	ErrApplied = errors.New("fsm: entry was applied before")
)

// OutcomeKnown reports whether err says what happened to a proposal: nil means that it
// was applied, another error that it was not applied and never will be. OutcomeKnown
// returns false for errors that match [ErrUnknown], [ErrSessionExpired], [ErrStale] or
// [ErrWindow].
func OutcomeKnown(err error) bool {
	return !errors.Is(err, ErrUnknown) && !errors.Is(err, ErrSessionExpired) &&
		!errors.Is(err, ErrStale) && !errors.Is(err, ErrWindow)
}

// NotLeader is an [ErrNotLeader] that names the leader.
type NotLeader struct{ Leader string } // "": unknown

func (e *NotLeader) Error() string {
	if e.Leader == "" {
		return ErrNotLeader.Error() + ": the leader is not known"
	}
	return fmt.Sprintf("%v: %q leads", ErrNotLeader, e.Leader)
}

// Is reports whether target is [ErrNotLeader].
func (e *NotLeader) Is(target error) bool { return target == ErrNotLeader }

// PanicError is a panic of an update. A session remembers only its text.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("%v: %v", ErrPanicked, e.Value) }

// Is reports whether target is [ErrPanicked].
func (e *PanicError) Is(target error) bool { return target == ErrPanicked }

// Unwrap returns the value of the panic if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

func panicked(value any) error {
	if err, ok := value.(error); ok && !inspectable(err) {
		value = fmt.Sprint(value) // Sprint survives a panic of the value's methods
	}
	return &PanicError{Value: value, Stack: debug.Stack()}
}

// inspectable reports whether errors.Is can inspect an error without a panic. A nil
// pointer may also be an error, and its methods may not expect a nil receiver.
func inspectable(err error) (is bool) {
	defer func() { is = recover() == nil }()
	_ = errors.Is(err, errNone)
	return true
}

// errNone equals no other error.
var errNone = errors.New("none")
