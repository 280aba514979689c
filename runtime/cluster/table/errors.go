package table

import (
	"errors"
	"fmt"
)

// Errors of a transaction. Nothing was changed.
var (
	// ErrGuard means that a guard did not hold, see [GuardError].
	ErrGuard = errors.New("table: a guard does not hold")
	// ErrPlan means that the plan of a node's topology differs from the plan of the table.
	ErrPlan = errors.New("table: the node was built from another topology")
	// ErrSuperseded means that a newer process has joined under the node's name.
	ErrSuperseded = errors.New("table: a newer process has joined under this name")
	// ErrInUse means that a node still has containers.
	ErrInUse = errors.New("table: the node still has containers")
	// ErrInvalid means that a guard or a change is invalid, for example because it names
	// an unknown node.
	ErrInvalid = errors.New("table: invalid transaction")
	// ErrLimit means that the table or the transaction would exceed a limit.
	ErrLimit = errors.New("table: limit exceeded")
)

// Errors of leases.
var (
	// ErrHeld means that another holder has the lease.
	ErrHeld = errors.New("table: the lease is held")
	// ErrLeaseLost means that a lease was not renewed in time, or that another holder has
	// acquired it.
	ErrLeaseLost = errors.New("table: the lease is lost")
	// ErrReleased means that the holder has released the lease.
	ErrReleased = errors.New("table: the lease was released")
)

// Errors of engines.
var (
	// ErrUnknown means that the answer was lost. The transaction may have been applied, or
	// may be applied later. A transaction with guards can be repeated.
	ErrUnknown = errors.New("table: the outcome of the transaction is not known")
	// ErrClosed means that the table was closed.
	ErrClosed = errors.New("table: closed")
	// ErrDamaged means that an encoded command or snapshot is not valid.
	ErrDamaged = errors.New("table: damaged")
	// ErrRefused means that the members of the table refuse this node. The text says why.
	ErrRefused = errors.New("table: the node was refused")
)

// GuardError is an [ErrGuard] that names the guard.
type GuardError struct {
	Index int    // of the guard in the transaction
	Guard Guard  // as proposed
	Got   string // the value in the table
}

func (e *GuardError) Error() string {
	return fmt.Sprintf("%v: guard %d wants %v, got %s", ErrGuard, e.Index, e.Guard, e.Got)
}

func (e *GuardError) Unwrap() error { return ErrGuard }
