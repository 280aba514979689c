package fsm

import (
	"errors"
	"fmt"
	"reflect"
)

// Definition describes a state machine: its state S, the update type U that changes the
// state, and R, the type of an update's result. R is struct{} for updates that return
// only an error, see [NoResult].
//
//	fsm.Definition[Accounts, Transfer, int64]{
//		Update: (*Transfer).Update, // func (t *Transfer) Update(a *Accounts) (int64, error)
//	}
type Definition[S, U, R any] struct {
	// Update changes the state. It is called once on each replica, in tests sometimes
	// twice, and each call must have the same result. So it must depend only on the update
	// and the state: not on a clock, on random numbers or on the order of a map. With a
	// log it must not depend on what the codec of the state does not keep. An error means
	// that the state is unchanged, so Update must check all conditions before it changes
	// anything. The update is valid until the call returns: the state must not keep u,
	// but it may keep what the update points to. With a log, the result may point into
	// the state, because it is encoded at once. In memory the result goes to the caller
	// as it is, so later updates must not change it.
	Update func(u *U, s *S) (R, error)

	// UpdateAt, if not nil, is called instead of Update.
	UpdateAt func(u *U, s *S, e Entry) (R, error)

	// Revert undoes what Update did. It is needed if a controller adds updates before
	// it commits them ([Updates], [Commit], [Revert]), and may be nil otherwise. Revert
	// gets the same update that Update got, so Update may store in it what Revert
	// needs. With a log, only what the update's codec writes is kept.
	Revert func(u *U, s *S) error

	// Codecs, needed with a log. If R is struct{}, no result is written.
	StateCodec  Codec[S]
	UpdateCodec Codec[U]
	ResultCodec Codec[R]

	// Description says how the codecs write, see [Compatible]. "" means that this is
	// unknown. The description is kept in the log. A program with incompatible types
	// does not open the log.
	Description string

	// Errors are the errors of Update that keep their identity: [errors.Is] finds them
	// in the error of a proposal on each node, also in a repeated answer, after a
	// restart, and when the answer comes from a snapshot.
	Errors []Sentinel
}

// Sentinel is an error that is remembered by its name. The meaning of a name must not
// change as long as the log exists.
type Sentinel struct {
	Name string
	Err  error // nil: the entry is ignored
}

// NoResult adapts an update's method that returns only an error for [Definition].
func NoResult[S, U any](update func(*U, *S) error) func(*U, *S) (struct{}, error) {
	return func(u *U, s *S) (struct{}, error) { return struct{}{}, update(u, s) }
}

const (
	sentinelsMax      = 1000 // errors of one definition: each one is compared with the error of a failed update
	sentinelNameMax   = 128  // bytes of its name, which is part of sessions and snapshots
	sentinelsPerError = 8    // names that are remembered for one error
)

// check returns an error if the definition has no update function.
func (d *Definition[S, U, R]) check() error {
	if d.Update == nil && d.UpdateAt == nil {
		return errors.New("fsm: the definition must have Update or UpdateAt")
	}
	return nil
}

// checkErrors returns an error if a sentinel error is invalid.
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

// CheckLogged returns an error if the definition cannot be used with a log.
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
			return fmt.Errorf("fsm: a definition with a log must have a codec for the %s", c.what)
		}
	}
	if len(d.Description) > descriptionMax {
		return fmt.Errorf("fsm: the description must have at most %d bytes, got %d", descriptionMax, len(d.Description))
	}
	_, err := parseDescription(d.Description)
	return err
}

// hasResult reports whether updates return a value.
func (d *Definition[S, U, R]) hasResult() bool { return reflect.TypeFor[R]().Size() > 0 }

// must panics if err is not nil.
func must(err error) {
	if err != nil {
		panic(err.Error())
	}
}
