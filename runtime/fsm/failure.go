package fsm

import (
	"errors"
	"strings"
)

// failure is the remembered error of a command: its text, the error of this package
// that it was, and the errors of the definition that it matched.
type failure struct {
	kind    byte
	text    string
	names   []string // of the definition's errors
	matched []error  // the errors for these names that the definition still has
}

// The kinds of failures.
const (
	failureOwn     = iota + 1 // an error of the update itself
	failurePanic              // ErrPanicked
	failureTooMany            // ErrTooMany
	failureResult             // ErrResult
	failureKinds
)

// kindErrors are the errors of this package by kind.
var kindErrors = [failureKinds]error{failurePanic: ErrPanicked, failureTooMany: ErrTooMany, failureResult: ErrResult}

func (f *failure) Error() string { return f.text }

// Is reports whether target is the error of this package for f's kind.
func (f *failure) Is(target error) bool { return target != nil && target == kindErrors[f.kind] }

// Unwrap returns the definition's errors that the remembered error matched.
func (f *failure) Unwrap() []error { return f.matched }

// sentinels are the errors of a definition.
type sentinels struct {
	list     []Sentinel
	byName   map[string]error
	outcomes []*outcome // for each error without wrapping, which most updates return
}

func newSentinels(list []Sentinel) *sentinels {
	s := &sentinels{byName: make(map[string]error)}
	for _, v := range list {
		if v.Err != nil {
			s.list = append(s.list, v)
			s.byName[v.Name] = v.Err
		}
	}
	for _, v := range s.list {
		s.outcomes = append(s.outcomes, &outcome{failure: s.failure(v.Err)})
	}
	return s
}

// outcome returns what a session remembers of an error.
func (s *sentinels) outcome(err error) *outcome {
	for i := range s.outcomes {
		if same(err, s.list[i].Err) {
			return s.outcomes[i]
		}
	}
	return &outcome{failure: s.failure(err)}
}

// same reports whether two errors are equal. Errors that cannot be compared are not.
func same(a, b error) (is bool) {
	defer func() { _ = recover() }()
	return a == b
}

func (s *sentinels) failure(err error) *failure {
	f := &failure{kind: failureOwn, text: text(err)}
	for kind := failureOwn + 1; kind < failureKinds; kind++ {
		if errors.Is(err, kindErrors[kind]) {
			f.kind = byte(kind)
			break
		}
	}
	for i := range s.list {
		if len(f.names) < sentinelsPerError && matches(err, s.list[i].Err) {
			f.names = append(f.names, s.list[i].Name)
		}
	}
	s.resolve(f)
	return f
}

// resolve sets the definition's errors that have the failure's names.
func (s *sentinels) resolve(f *failure) {
	for _, name := range f.names {
		if err := s.byName[name]; err != nil {
			f.matched = append(f.matched, err)
		}
	}
}

// matches is errors.Is, and survives a panic in a method Is of an error.
func matches(err, target error) (is bool) {
	defer func() {
		if recover() != nil {
			is = false
		}
	}()
	return errors.Is(err, target)
}

// text returns the text of err, cut to a limit. It survives a panic in the method
// Error.
func text(err error) (s string) {
	defer func() {
		if recover() != nil {
			s = "an error whose method Error panics"
		}
	}()
	s = err.Error()
	if len(s) > failureTextMax {
		s = strings.Clone(s[:failureTextMax])
	}
	return s
}
