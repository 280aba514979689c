// Package chain inspects errors that user code returns. Their methods are user code: a
// method may panic, and a chain of Unwrap may be endless, so that errors.Is would not
// return.
package chain

import (
	"errors"
	"fmt"
	"math"
	"reflect"
)

const (
	depthMax  = 100    // far deeper than errors are wrapped in practice
	errorsMax = 10_000 // in a tree; errors.Join may have one for each row of a batch
)

// Sort returns the signal that err is or wraps. If err is not a signal and wraps none, failure
// is err. Signals that are nil are ignored.
//
// A list of errors, such as the result of errors.Join, is a signal only if each error in it
// is a signal. Otherwise it contains a failure. An error of fmt.Errorf is one error, not a
// list: it is enough that one %w is a signal, for example in "outcome unknown: context
// canceled". If err is or wraps several signals, Sort returns the signal that comes first
// in the argument signals. Signals in a list that contains a failure do not count.
//
// If a method of an error panics, or the chain of errors does not end, failure is a
// replacement that says so and wraps nothing.
func Sort(err error, signals ...error) (signal, failure error) {
	for _, s := range signals {
		if s != nil && err == s { // the common case, without a call of a method
			return s, nil
		}
	}
	first, fault := look(err, isList, func(e error) int { return match(e, signals) })
	switch {
	case fault != nil:
		return nil, fault
	case first != none:
		return signals[first], nil
	}
	return nil, err
}

// match returns the index of the first signal that e itself is, or none. It does not look at
// the errors that e wraps.
func match(e error, signals []error) int {
	is, _ := e.(interface{ Is(error) bool })
	for i, s := range signals {
		if s != nil && (e == s || is != nil && is.Is(s)) {
			return i
		}
	}
	return none
}

// none is returned in place of an index if there is no signal.
const none = math.MaxInt

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
	found, fault := look(err, never, func(e error) int { return match(e, []error{target}) })
	return found != none && fault == nil
}

func never(error) bool { return false }

// As finds the first error of type T that err is or wraps. It finds none if errors.As
// would panic or not return.
func As[T error](err error) (found T, ok bool) {
	_, fault := look(err, never, func(e error) int {
		if found, ok = e.(T); ok {
			return 0
		}
		as, _ := e.(interface{ As(any) bool })
		if ok = as != nil && as.As(&found); ok {
			return 0
		}
		return none
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

// look visits err and the errors that it wraps, from the outside in, but not those of an error for
// which visit returns an index. It returns the smallest index that visit has returned, and stops at
// 0. If isList returns true for an error, visit must return an index for each of the errors that it
// wraps. Otherwise the indices of this list do not count. If the search is not possible, look
// returns fault, a replacement for err. fault does not wrap err, because a later search would have
// the same problem.
func look(err error, isList func(error) bool, visit func(error) int) (first int, fault error) {
	returned := false
	defer func() {
		if !returned {
			if cause := recover(); cause != nil { // fmt recovers from a panic of Error
				fault = fmt.Errorf("%v (an error of type %T; one of its methods, or of an error that it wraps, panicked: %v)", err, err, cause)
			}
		}
	}()
	w := walk{isList: isList, visit: visit}
	first = w.down(err, 0)
	returned = true
	if w.endless { // do not call its method Error, which may not return either
		return none, fmt.Errorf("an error of type %T that wraps too many errors, or itself", err)
	}
	return first, nil
}

type walk struct {
	isList  func(error) bool
	visit   func(error) int
	visits  int
	endless bool
}

// down does the same as look, from the given depth on.
func (w *walk) down(err error, depth int) int {
	for ; err != nil && !w.endless; depth++ {
		if w.visits++; depth > depthMax || w.visits > errorsMax {
			w.endless = true
			return none
		}
		if i := w.visit(err); i != none {
			return i
		}
		if many, ok := err.(interface{ Unwrap() []error }); ok {
			return w.any(many.Unwrap(), w.isList(err), depth+1)
		}
		err = errors.Unwrap(err)
	}
	return none
}

// any calls down for several errors. If they are a list, it visits all of them, because a method of
// any error may panic.
func (w *walk) any(errs []error, list bool, depth int) int {
	first, all := none, true
	for _, e := range errs {
		if first == 0 && !list {
			break
		}
		i := w.down(e, depth)
		first, all = min(first, i), all && i != none
	}
	if list && !all {
		return none
	}
	return first
}
