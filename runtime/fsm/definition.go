package fsm

import (
	"errors"
	"fmt"
	"reflect"
)

// Definition says what a machine is made of: a state S, an update type U that changes
// it, and what an update returns, R. For updates that return an error alone R is
// struct{}, see [NoResult].
//
//	fsm.Definition[Accounts, Transfer, int64]{
//		Update: (*Transfer).Update, // func (t *Transfer) Update(a *Accounts) (int64, error)
//	}
type Definition[S, U, R any] struct {
	// Update changes the state. It is called once on each replica, with the same result
	// on each: it depends on the update and the state alone, so on no clock, no
	// randomness and no order of a map. An error means that the state is unchanged: all
	// conditions are checked before anything is changed. The update is valid until the
	// call returns; what it refers to may be kept in the state. What the result refers to
	// may be part of the state where there is a log, which writes it at once. In memory
	// the result goes to the caller as it is, so later updates must not change it.
	Update func(u *U, s *S) (R, error)

	// UpdateAt, where it is not nil, is called in place of Update.
	UpdateAt func(u *U, s *S, e Entry) (R, error)

	// Revert undoes what Update did, in a machine whose controller adds updates that are
	// not committed yet ([Updates], [Commit], [Revert]); nil where there is none. It is
	// called on the update that Update was called on, so Update may leave in it what
	// Revert needs; with a log only what the update's codec keeps.
	Revert func(u *U, s *S) error

	// Codecs, for machines with a log. No result is written where R is struct{}.
	StateCodec  Codec[S]
	UpdateCodec Codec[U]
	ResultCodec Codec[R]

	// Description says how the codecs write, see [Compatible]; "" where nothing is known
	// of it. It is kept in the log, which a program with other types does not open.
	Description string

	// Errors are those of Update that keep their identity: [errors.Is] finds them in the
	// error of a proposal on each node, also in that of a repeated one, after a restart
	// and in a snapshot.
	Errors []Sentinel
}

// Sentinel is an error that is remembered by its name. A name stands for the same
// error as long as the log lives.
type Sentinel struct {
	Name string
	Err  error // nil: it is left out
}

// NoResult is an update's method that returns an error alone, as [Definition] takes
// it.
func NoResult[S, U any](update func(*U, *S) error) func(*U, *S) (struct{}, error) {
	return func(u *U, s *S) (struct{}, error) { return struct{}{}, update(u, s) }
}

const (
	sentinelsMax      = 1000 // errors of one definition: each is compared with the error of an update that fails
	sentinelNameMax   = 128  // bytes of its name, which sessions and snapshots hold
	sentinelsPerError = 8    // names that are remembered of one error
)

// check says what a definition lacks.
func (d *Definition[S, U, R]) check() error {
	if d.Update == nil && d.UpdateAt == nil {
		return errors.New("fsm: the definition must have Update or UpdateAt")
	}
	return nil
}

// checkErrors says what is wrong with the errors of a definition.
func (d *Definition[S, U, R]) checkErrors() error {
	if len(d.Errors) > sentinelsMax {
		return fmt.Errorf("fsm: the definition must have at most %d errors, got %d", sentinelsMax, len(d.Errors))
	}
	seen := make(map[string]bool)
	for _, s := range d.Errors {
		switch {
		case s.Name == "" || len(s.Name) > sentinelNameMax:
			return fmt.Errorf("fsm: the name of an error must have 1 to %d bytes, got %d", sentinelNameMax, len(s.Name))
		case seen[s.Name]:
			return fmt.Errorf("fsm: two errors of the definition have the name %q", s.Name)
		case s.Err == nil:
		case !reflect.TypeOf(s.Err).Comparable():
			return fmt.Errorf("fsm: error %q of the definition must be comparable, got a %T", s.Name, s.Err)
		case !OutcomeKnown(s.Err):
			return fmt.Errorf("fsm: error %q of the definition must not match an error of package fsm that leaves the outcome open: %w", s.Name, s.Err)
		}
		seen[s.Name] = true
	}
	return nil
}

// CheckLogged says what a definition lacks for a machine with a log.
func (d *Definition[S, U, R]) CheckLogged() error {
	if err := d.check(); err != nil {
		return err
	}
	if err := d.checkErrors(); err != nil {
		return err
	}
	for _, c := range []struct {
		what     string
		complete bool
	}{
		{"state", d.StateCodec.complete()},
		{"update", d.UpdateCodec.complete()},
		{"result", d.ResultCodec.complete() || !d.hasResult()},
	} {
		if !c.complete {
			return fmt.Errorf("fsm: the definition of a machine with a log must have a codec of the %s", c.what)
		}
	}
	if len(d.Description) > descriptionMax {
		return fmt.Errorf("fsm: the description must have at most %d bytes, got %d", descriptionMax, len(d.Description))
	}
	_, err := parseDescription(d.Description)
	return err
}

// hasResult reports whether there is something in a result.
func (d *Definition[S, U, R]) hasResult() bool { return reflect.TypeFor[R]().Size() > 0 }

// must panics where a definition cannot be one.
func must(err error) {
	if err != nil {
		panic(err.Error())
	}
}
