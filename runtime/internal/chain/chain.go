// Package chain looks at the errors that users of the runtime return. Their
// methods are the users' code: one may panic, and a chain of Unwrap may have no
// end, where errors.Is would not return.
package chain

import (
	"errors"
	"fmt"
)

const (
	depthMax  = 100    // far deeper than anybody wraps
	errorsMax = 10_000 // of a tree: errors.Join may have one for each row of a batch
)

// Sort tells which of the signals err is or wraps, as errors.Is does; a nil
// signal is none. Where it is none of them, failure is err, or, where a method of
// the chain panics or the chain does not end, an error in its place that says so
// and wraps nothing.
func Sort(err error, signals ...error) (signal, failure error) {
	for _, s := range signals {
		if s != nil && err == s { // mostly so, and no method is called
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

// As finds the first error of type T that err is or wraps. It finds none where
// errors.As would panic or not return.
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

// OfPanic is the error for a panic with cause, which is not nil.
func OfPanic(cause any) error {
	c, ok := cause.(error)
	if !ok {
		return fmt.Errorf("panic: %v", cause)
	}
	_, c = Sort(c)
	return fmt.Errorf("panic: %w", c)
}

// look visits err and what it wraps, outside in, until a visit returns true. A
// fault stands for err where it cannot be looked at. It does not wrap err, in
// which whoever looks for something would meet the same.
func look(err error, visit func(error) bool) (fault error) {
	returned := false
	defer func() {
		if !returned {
			if cause := recover(); cause != nil { // fmt recovers from what Error panics with
				fault = fmt.Errorf("%v (an error of type %T, a method of which, or of what it wraps, panics: %v)", err, err, cause)
			}
		}
	}()
	w := walk{visit: visit}
	w.down(err, 0)
	returned = true
	if w.endless { // its Error is not called: it may have no end either
		return fmt.Errorf("an error of type %T, which wraps too many others, or itself", err)
	}
	return nil
}

type walk struct {
	visit   func(error) bool
	visits  int
	endless bool
}

// down reports whether the walk is over.
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
