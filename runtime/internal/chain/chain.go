// Package chain inspects errors that user code returns. Their methods are user code: a
// method may panic, and a chain of Unwrap may be endless, so that errors.Is would not
// return.
package chain

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
)

const (
	depthMax  = 100    // far deeper than errors are wrapped in practice
	errorsMax = 10_000 // in a tree; errors.Join may have one for each row of a batch
)

// Sort returns the signal that err is or wraps. If err is not a signal and wraps none, failure
// is err. Signals that are nil are ignored.
//
// A list of errors, such as the result of errors.Join, is a signal only if each error in it
// is a signal. Otherwise it contains a failure. If a list contains several signals and no
// failure, Sort returns the signal that is first in the argument signals. An error of
// fmt.Errorf is one error, not a list: it is enough that one %w is a signal, for example in
// "outcome unknown: context canceled".
//
// If a method of an error panics, or the chain of errors does not end, failure is a
// replacement that says so and wraps nothing.
func Sort(err error, signals ...error) (signal, failure error) {
	for _, s := range signals {
		if s != nil && err == s { // the common case, without a call of a method
			return s, nil
		}
	}
	first := len(signals)
	found, fault := look(err, isList, func(e error) bool {
		i := match(e, signals)
		first = min(first, i)
		return i < len(signals)
	})
	switch {
	case fault != nil:
		return nil, fault
	case found:
		return signals[first], nil
	}
	return nil, err
}

// match returns the index of the first signal that e itself is, or the number of signals. It
// does not look at the errors that e wraps.
func match(e error, signals []error) int {
	is, _ := e.(interface{ Is(error) bool })
	for i, s := range signals {
		if s != nil && (e == s || is != nil && is.Is(s)) {
			return i
		}
	}
	return len(signals)
}

var wrapErrors = reflect.TypeOf(fmt.Errorf("%w %w", errors.ErrUnsupported, errors.ErrUnsupported))

// isList reports whether an error with several wrapped errors is a list of independent errors.
func isList(err error) bool {
	_, is := err.(AnyOf)
	return !is && reflect.TypeOf(err) != wrapErrors
}

// AnyOf wraps several errors, of which one is enough to be a signal, as an error of fmt.Errorf does.
type AnyOf []error

func (e AnyOf) Error() string   { return errors.Join(e...).Error() }
func (e AnyOf) Unwrap() []error { return e }

// Is is like errors.Is, for any error of user code. It returns false if errors.Is would panic
// or not return.
func Is(err, target error) bool {
	found, fault := look(err, never, func(e error) bool { return match(e, []error{target}) == 0 })
	return found && fault == nil
}

func never(error) bool { return false }

// As finds the first error of type T that err is or wraps. It finds none if errors.As
// would panic or not return.
func As[T error](err error) (found T, ok bool) {
	_, fault := look(err, never, func(e error) bool {
		if found, ok = e.(T); ok {
			return true
		}
		as, _ := e.(interface{ As(any) bool })
		ok = as != nil && as.As(&found)
		return ok
	})
	return found, ok && fault == nil
}

// OfPanic returns the error for a panic with the given cause, which is not nil.
func OfPanic(cause any) error {
	c, ok := cause.(error)
	if !ok {
		return fmt.Errorf("panic: %v", cause)
	}
	_, c = Sort(c)
	return fmt.Errorf("panic: %w", c)
}

// look visits err and the errors that it wraps, from the outside in, until visit returns
// true. It reports whether visit has returned true. If isList returns true for an error, look
// visits all errors that it wraps, and visit must return true for each of them. If the search
// is not possible, look returns fault, a replacement for err. fault does not wrap err, because
// a later search would have the same problem.
func look(err error, isList, visit func(error) bool) (found bool, fault error) {
	returned := false
	defer func() {
		if !returned {
			if cause := recover(); cause != nil { // fmt recovers from a panic of Error
				fault = fmt.Errorf("%v (an error of type %T; one of its methods, or of an error that it wraps, panicked: %v)", err, err, cause)
			}
		}
	}()
	w := walk{isList: isList, visit: visit}
	found = w.down(err, 0)
	returned = true
	if w.endless { // do not call its method Error, which may not return either
		return false, fmt.Errorf("an error of type %T that wraps too many errors, or itself", err)
	}
	return found, nil
}

type walk struct {
	isList, visit func(error) bool
	visits        int
	endless       bool
}

// down is look from the given depth on. It reports whether err is found.
func (w *walk) down(err error, depth int) bool {
	for ; err != nil && !w.endless; depth++ {
		if w.visits++; depth > depthMax || w.visits > errorsMax {
			w.endless = true
			return false
		}
		if w.visit(err) {
			return true
		}
		if many, ok := err.(interface{ Unwrap() []error }); ok {
			errs := many.Unwrap()
			if !w.isList(err) {
				return slices.ContainsFunc(errs, func(e error) bool { return w.down(e, depth+1) })
			}
			all := len(errs) > 0
			for _, e := range errs { // visits all errors, because a method of one may panic
				all = w.down(e, depth+1) && all
			}
			return all
		}
		err = errors.Unwrap(err)
	}
	return false
}
