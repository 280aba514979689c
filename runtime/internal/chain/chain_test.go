package chain

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/topogen/topogen/internal/test/faulty"
)

// itself is an error that wraps itself. Its method Error does not return.
type itself struct{}

func (e itself) Error() string { return fmt.Sprint(e.Unwrap()) }
func (e itself) Unwrap() error { return e }

// twice is an error tree without end.
type twice struct{}

func (twice) Error() string     { return "twice" }
func (e twice) Unwrap() []error { return []error{e, e} }

type pointer struct {
	text string
	err  error
}

func (f *pointer) Error() string { return f.text }
func (f *pointer) Unwrap() error { return f.err }

// list is an error that is not comparable.
type list []string

func (l list) Error() string { return strings.Join(l, ", ") }

// match is an error whose methods Is and As match another error.
// several is a list of errors of another package.
type several []error

func (several) Error() string     { return "several" }
func (s several) Unwrap() []error { return s }

type equal struct{ error }

func (m equal) Is(target error) bool { return target == m.error }
func (m equal) As(target any) bool {
	p, ok := target.(**pointer)
	if ok {
		*p = &pointer{text: "as"}
	}
	return ok
}

func deep(n int, err error) error {
	for range n {
		err = fmt.Errorf("in: %w", err)
	}
	return err
}

func TestSort(t *testing.T) {
	other := errors.New("other")
	for name, c := range map[string]struct {
		err     error
		signal  error
		failure string // "": err itself
	}{
		"nothing":        {},
		"signal":         {err: io.EOF, signal: io.EOF},
		"second signal":  {err: io.ErrNoProgress, signal: io.ErrNoProgress},
		"wrapped":        {err: fmt.Errorf("x: %w", io.EOF), signal: io.EOF},
		"deep":           {err: deep(depthMax, io.EOF), signal: io.EOF},
		"joined":         {err: errors.Join(other, deep(3, io.EOF))},
		"joined first":   {err: errors.Join(io.EOF, other)},
		"joined within":  {err: fmt.Errorf("x: %w", errors.Join(io.EOF, fmt.Errorf("y: %w", errors.Join(io.EOF, other))))},
		"joined signals": {err: errors.Join(deep(1, io.ErrNoProgress), errors.Join(io.EOF)), signal: io.EOF},
		"joined panic":   {err: errors.Join(other, faulty.Error("Is")), failure: "no Is"},
		"many":           {err: errors.Join(append(slices.Repeat([]error{io.EOF}, 1000), other)...)},
		"many signals":   {err: errors.Join(slices.Repeat([]error{io.EOF}, 1000)...), signal: io.EOF},
		"empty list":     {err: several{}},
		"list":           {err: several{io.EOF, other}},
		"described":      {err: fmt.Errorf("%w: %w", other, deep(1, io.EOF)), signal: io.EOF},
		"described join": {err: errors.Join(io.EOF, fmt.Errorf("%w: %w", other, io.EOF)), signal: io.EOF},
		"described two":  {err: fmt.Errorf("%w: %w", io.ErrNoProgress, io.EOF), signal: io.EOF},
		"other list":     {err: fmt.Errorf("%w: %w", errors.Join(io.EOF, other), io.ErrNoProgress), signal: io.ErrNoProgress},
		"says it is":     {err: equal{io.EOF}, signal: io.EOF},
		"other":          {err: other},
		"not comparable": {err: list{"a", "b"}},
		"wraps itself":   {err: itself{}, failure: "an error of type chain.itself that wraps too many errors, or itself"},
		"itself within":  {err: &pointer{"in", itself{}}, failure: "wraps too many"},
		"endless tree":   {err: errors.Join(twice{}, io.EOF), failure: "wraps too many"},
		"list and end":   {err: errors.Join(io.EOF, itself{}), failure: "wraps too many"},
		"Is panics":      {err: faulty.Error("Is"), failure: "faulty (an error of type faulty.Error; one of its methods, or of an error that it wraps, panicked: no Is)"},
		"Unwrap panics":  {err: faulty.Error("Unwrap"), failure: "no Unwrap"},
		"Error panics":   {err: deep(1, faulty.Error("Unwrap")), failure: "in: faulty"},
		"nil pointer":    {err: (*pointer)(nil), failure: "<nil> (an error of type *chain.pointer"},
		"nil within":     {err: &pointer{"x", (*pointer)(nil)}, failure: "x (an error"},
	} {
		t.Run(name, func(t *testing.T) {
			signal, failure := Sort(c.err, io.EOF, nil, io.ErrNoProgress)
			switch {
			case signal != c.signal:
				t.Errorf("signal %v", signal)
			case c.signal != nil && failure != nil:
				t.Errorf("Sort returns the failure %v together with a signal", failure)
			case c.failure != "" && !strings.Contains(fmt.Sprint(failure), c.failure):
				t.Errorf("failure %v", failure)
			case c.failure != "" && errors.Unwrap(failure) != nil:
				t.Error("the failure wraps an error that cannot be inspected")
			case c.signal == nil && c.failure == "" && fmt.Sprintf("%#v", failure) != fmt.Sprintf("%#v", c.err):
				t.Errorf("failure %#v", failure)
			}
		})
	}
}

func TestIs(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"nothing":      {nil, false},
		"it":           {io.EOF, true},
		"joined":       {errors.Join(errors.New("other"), deep(3, io.EOF)), true},
		"says it is":   {equal{io.EOF}, true},
		"another":      {io.ErrNoProgress, false},
		"wraps itself": {itself{}, false},
		"panics":       {deep(1, faulty.Error("Is")), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Is(c.err, io.EOF); got != c.want {
				t.Error(got)
			}
		})
	}
}

func TestAs(t *testing.T) {
	want := &pointer{text: "want"}
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"nothing":      {nil, ""},
		"it":           {want, "want"},
		"wrapped":      {errors.Join(io.EOF, deep(3, want)), "want"},
		"says it is":   {equal{}, "as"},
		"another":      {io.EOF, ""},
		"wraps itself": {itself{}, ""},
		"As panics":    {deep(1, faulty.Error("As")), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := As[*pointer](c.err)
			if ok != (c.want != "") || ok && got.text != c.want {
				t.Errorf("%v, %v", got, ok)
			}
		})
	}
}

func TestOfPanic(t *testing.T) {
	if err := OfPanic(io.EOF); !errors.Is(err, io.EOF) || err.Error() != "panic: EOF" {
		t.Error(err)
	}
	if err := OfPanic("x"); err.Error() != "panic: x" {
		t.Error(err)
	}
	if err := OfPanic(itself{}); errors.Is(err, io.EOF) || !strings.HasPrefix(err.Error(), "panic: an error of type chain.itself") {
		t.Error(err)
	}
	if err := OfPanic((*pointer)(nil)); errors.Is(err, io.EOF) || !strings.HasPrefix(err.Error(), "panic: <nil>") {
		t.Error(err)
	}
}
