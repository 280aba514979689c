package fsm

import "errors"

// Reject marks the error of an Update that has changed nothing:
//
//	func (t *Transfer) Update(a *Accounts) error {
//		if a.Cents[t.From] < t.Cents {
//			return fsm.Reject(ErrNoMoney)
//		}
//		…
//
// It costs nothing, where after another error a machine with a log makes its state
// anew. The proposal ends with err itself; [errors.Is] and [errors.As] see through
// the mark. Reject of nil is nil.
func Reject(err error) error {
	if err == nil {
		return nil
	}
	return &rejection{err}
}

type rejection struct{ err error }

func (r *rejection) Error() string { return r.err.Error() }
func (r *rejection) Unwrap() error { return r.err }

// rejected returns the error of an Update without its mark, and whether it has
// one: anywhere, as the user may have wrapped it.
func rejected(err error) (error, bool) {
	if r, ok := err.(*rejection); ok {
		return r.err, true
	}
	if errors.Is(err, ErrPanicked) {
		return err, false // whatever it panicked with
	}
	_, ok := errors.AsType[*rejection](err)
	return err, ok
}
