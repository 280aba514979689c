package table

import (
	"fmt"
	"time"
)

// CommandKind is the kind of a command.
type CommandKind uint8

// The kinds of commands. The numbers are in the log and must not change. 3 was the renewal of one lease.
const (
	CommandTxn     CommandKind = 1
	CommandAcquire CommandKind = 2
	CommandRelease CommandKind = 4
	CommandRenew   CommandKind = 5
)

// Command is an entry in the log of a table.
type Command struct {
	Kind    CommandKind
	Guards  []Guard  // of CommandTxn
	Changes []Change // of CommandTxn

	Renewals []Renewal // of CommandRenew

	Name   string        // of the lease, of CommandAcquire and CommandRelease
	Holder string        // of CommandAcquire
	TTL    time.Duration // of CommandAcquire
	Token  uint64        // of CommandRelease
}

// Check returns an error if the command exceeds a limit.
func (c *Command) Check() error {
	if len(c.Guards) > ChangesMax || len(c.Changes) > ChangesMax {
		return fmt.Errorf("%w: a transaction has at most %d guards and %[2]d changes, got %d and %d", ErrLimit, ChangesMax, len(c.Guards), len(c.Changes))
	}
	switch c.Kind {
	case CommandTxn:
		return nil
	case CommandRenew:
		if len(c.Renewals) > LeasesMax {
			return fmt.Errorf("%w: a command has at most %d renewals, got %d", ErrLimit, LeasesMax, len(c.Renewals))
		}
		for _, w := range c.Renewals {
			if err := checkName("lease", w.Name); err != nil {
				return err
			}
		}
		return nil
	}
	if err := checkName("lease", c.Name); err != nil {
		return err
	}
	if c.Kind != CommandAcquire {
		return nil
	}
	if c.TTL < LeaseMin || c.TTL > LeaseMax {
		return fmt.Errorf("%w: a lease must have a ttl of %v to %v, got %v", ErrInvalid, LeaseMin, LeaseMax, c.TTL)
	}
	return checkName("holder", c.Holder)
}

// The codes of an Outcome. They are in the log and must not change.
const (
	codeApplied    = 0
	codeGuard      = 1
	codeInvalid    = 2
	codePlan       = 3
	codeSuperseded = 4
	codeInUse      = 5
	codeLimit      = 6
	codeHeld       = 7
	codeLost       = 8
)

var codeErrors = []error{nil, ErrGuard, ErrInvalid, ErrPlan, ErrSuperseded, ErrInUse, ErrLimit, ErrHeld, ErrLeaseLost}

// Outcome is the result of a command.
type Outcome struct {
	Code     uint8
	Position uint32 // of the command's revision
	Index    int    // of the guard that did not hold
	Number   uint64 // the token of an acquired lease, or the nanoseconds until a held lease expires
	Text     string // the reason of a refusal, or the value that a guard found
}

// Err returns the error of an outcome, or nil. c is the command.
func (o *Outcome) Err(c *Command) error {
	switch {
	case o.Code == codeApplied:
		return nil
	case o.Code == codeGuard && o.Index < len(c.Guards):
		return &GuardError{Index: o.Index, Guard: c.Guards[o.Index], Got: o.Text}
	case int(o.Code) < len(codeErrors):
		return fmt.Errorf("%w: %s", codeErrors[o.Code], o.Text)
	}
	return fmt.Errorf("%w: outcome %d: %s", ErrDamaged, o.Code, o.Text)
}
