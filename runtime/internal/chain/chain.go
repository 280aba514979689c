// Package chain inspects errors that user code returns. Their methods are user code: a
// method may panic, and a chain of Unwrap may be endless, so that errors.Is would not
// return.
package chain

import (
	"errors"
	"fmt"
)

const (
	depthMax  = 100    // far deeper than errors are wrapped in practice
	errorsMax = 10_000 // in a tree; errors.Join may have one for each row of a batch
)

// Sort returns the signal that err is or wraps, as errors.Is would find it; nil signals
// are ignored. If there is none, failure is err. If a method of the chain panics, or
// the chain does not end, failure is a replacement that says so and wraps nothing.
func Sort(err error, signals ...error) (signal, failure error) {
	for _, s := range signals {
		if s != nil && err == s { // the common case, without a call of a method
			return s, nil
		}
	}
	fault := look(err, func(e error) bool {
		is, _ := e.(interface{ Is(error) bool })
		for _, s := range signals {
			if s != nil && (e == s || is != nil && is.Is(s)) {
				signal = s
				return true
			}
		}
		return false
	})
	switch {
	case fault != nil:
		return nil, fault
	case signal != nil:
		return signal, nil
	}
	return nil, err
}

// As finds the first error of type T that err is or wraps. It finds none if errors.As
// would panic or not return.
func As[T error](err error) (found T, ok bool) {
	fault := look(err, func(e error) bool {
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

// look visits err and the errors that it wraps, from the outside in, until visit
// returns true. If that is not possible, it returns fault, a replacement for err. fault
// does not wrap err, because a later search would run into the same problem.
func look(err error, visit func(error) bool) (fault error) {
	returned := false
	defer func() {
		if !returned {
			if cause := recover(); cause != nil { // fmt recovers from a panic of Error
				fault = fmt.Errorf("%v (an error of type %T; one of its methods, or of an error that it wraps, panicked: %v)", err, err, cause)
			}
		}
	}()
	w := walk{visit: visit}
	w.down(err, 0)
	returned = true
	if w.endless { // do not call its method Error, which may not return either
		return fmt.Errorf("an error of type %T that wraps too many errors, or itself", err)
	}
	return nil
}

type walk struct {
	visit   func(error) bool
	visits  int
	endless bool
}

// down reports whether the walk has ended.
func (w *walk) down(err error, depth int) bool {
	for ; err != nil; depth++ {
		if w.visits++; depth > depthMax || w.visits > errorsMax {
			w.endless = true
			return true
		}
		if w.visit(err) {
			return true
		}
		if many, ok := err.(interface{ Unwrap() []error }); ok {
			for _, e := range many.Unwrap() {
				if w.down(e, depth+1) {
					return true
				}
			}
			return false
		}
		err = errors.Unwrap(err)
	}
	return false
}
