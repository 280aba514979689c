package fsm

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// What a proposal ends with, besides the update's own error. Each says whether
// the outcome is known, as [OutcomeKnown] does.
var (
	// ErrUnknown: the answer was lost, by a crash, a partition or the end of the
	// caller's patience. The update may have been applied, or may yet be. Only the
	// same (client, sequence) may be proposed again. Not known.
	ErrUnknown = errors.New("fsm: the outcome is not known")
	// ErrSessionExpired: there is no such session. It was never opened, or was not used
	// for long, or its client has opened others since. The command was not applied now,
	// but an earlier one of the same sequence may have been. Not known.
	ErrSessionExpired = errors.New("fsm: session has expired")
	// ErrStale: the sequence lies below the client's floor, so that its result has
	// been forgotten. Not known.
	ErrStale = errors.New("fsm: the client no longer waits for this sequence")
	// ErrWindow: the sequence lies further above the client's floor than a session
	// remembers. The command was not applied, but another of the same sequence may
	// yet be. Not known.
	ErrWindow = errors.New("fsm: the client waits for too many results")

	// ErrNotLeader: another node has to be asked, see [NotLeader]. Known: not applied.
	ErrNotLeader = errors.New("fsm: not the leader")
	// ErrTooMany: more is under way than the machine takes at once. Known: not
	// applied; later there may be room.
	ErrTooMany = errors.New("fsm: too much is under way")
	// ErrTooLarge: the update is larger than an entry may be. Known: not applied.
	ErrTooLarge = errors.New("fsm: update is too large")
	// ErrResult: what Update has returned has more bytes than a session remembers, or its
	// codec cannot write it. Known: not applied.
	ErrResult = errors.New("fsm: the result of the update cannot be kept")
	// ErrNotRunning: the machine has not been started. Known: not applied.
	ErrNotRunning = errors.New("fsm: the machine is not running: call it after Start, or while the topology runs")
	// ErrStopped: the machine was closed, or has failed. Known: not applied.
	ErrStopped = errors.New("fsm: machine has stopped")
	// ErrPanicked: the update has panicked, see [PanicError]. Known: not applied.
	ErrPanicked = errors.New("fsm: update panicked")
)

// What a machine with a log stops with: nothing can be applied after it.
var (
	// ErrDamaged: an entry or a snapshot is not what this package writes.
	ErrDamaged = errors.New("fsm: damaged")
	// ErrDiverged: an update that was applied once failed when it was applied again
	// to the same state, so Update depends on something else.
	ErrDiverged = errors.New("fsm: an update was applied and fails now: Update must depend on the state and the update alone")
	// ErrApplied: an entry is not behind the last one.
	ErrApplied = errors.New("fsm: entry was applied before")
)

// OutcomeKnown reports whether err says what became of a proposal: applied where
// err is nil, and otherwise not applied, now and later. An error that matches
// [ErrUnknown], [ErrSessionExpired], [ErrStale] or [ErrWindow] does not say it.
func OutcomeKnown(err error) bool {
	return !errors.Is(err, ErrUnknown) && !errors.Is(err, ErrSessionExpired) &&
		!errors.Is(err, ErrStale) && !errors.Is(err, ErrWindow)
}

// NotLeader is an [ErrNotLeader] that says who leads.
type NotLeader struct{ Leader string } // "": nobody is known to

func (e *NotLeader) Error() string {
	if e.Leader == "" {
		return ErrNotLeader.Error() + ", and none is known"
	}
	return fmt.Sprintf("%v, which is %q", ErrNotLeader, e.Leader)
}

// Is reports whether target is [ErrNotLeader].
func (e *NotLeader) Is(target error) bool { return target == ErrNotLeader }

// PanicError is the panic of an update. What a session remembers of it is the text.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("%v: %v", ErrPanicked, e.Value) }

// Is reports whether target is [ErrPanicked].
func (e *PanicError) Is(target error) bool { return target == ErrPanicked }

// Unwrap returns what it panicked with, if that was an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

func panicked(value any) error {
	if err, ok := value.(error); ok && !inspectable(err) {
		value = fmt.Sprint(value) // which takes care of what panics
	}
	return &PanicError{Value: value, Stack: debug.Stack()}
}

// sound reports whether errors.Is can look at an error without a panic: a nil
// pointer may be an error, too, whose methods do not expect that.
func inspectable(err error) (is bool) {
	defer func() { is = recover() == nil }()
	_ = errors.Is(err, errNone)
	return true
}

// errNone is no other error.
var errNone = errors.New("none")
