package errtop

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
)

func makeError() error { return New("the tank is empty") }

func wrapError(err error) error { return Wrap(err) }

func TestErrorsCarryTheirStack(t *testing.T) {
	for _, c := range []struct {
		name     string
		err      error
		reason   string
		function string // innermost
	}{
		{"New", makeError(), "the tank is empty", "makeError"},
		{"Wrap", wrapError(fs.ErrNotExist), "file does not exist", "wrapError"},
		{"wrapped further", fmt.Errorf("start: %w", makeError()), "start: the tank is empty", "makeError"},
		{"joined", errors.Join(errors.New("a"), makeError()), "a\nthe tank is empty", "makeError"},
		{"wrapped twice", wrapError(makeError()), "the tank is empty", "makeError"},
		{"wrapped twice with words between", wrapError(fmt.Errorf("start: %w", makeError())), "start: the tank is empty", "makeError"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.err.Error() != c.reason {
				t.Errorf("the text is %q, want %q", c.err, c.reason)
			}
			for f := range StackOf(c.err).Frames() {
				if !strings.HasSuffix(f.Function, "."+c.function) || !strings.HasSuffix(f.File, "traced_test.go") || f.Line == 0 {
					t.Errorf("the stack begins with %s, %s:%d", f.Function, f.File, f.Line)
				}
				break
			}
			if !strings.Contains(StackOf(c.err).String(), "TestErrorsCarryTheirStack") {
				t.Errorf("the caller is missing in the stack:\n%v", StackOf(c.err))
			}
		})
	}
}

func TestWrapChangesNothingElse(t *testing.T) {
	if Wrap(nil) != nil || StackOf(nil) != nil || StackOf(fs.ErrExist) != nil {
		t.Error("Wrap(nil) is not nil")
	}
	path := &fs.PathError{Op: "open", Path: "x", Err: fs.ErrNotExist}
	err := Wrap(path)
	if got, ok := errors.AsType[*fs.PathError](err); !ok || got != path || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v does not wrap its argument", err)
	}
	if Wrap(err) != err {
		t.Error("an error with a stack was wrapped again")
	}
	if a, b := makeError(), makeError(); a == b || !errors.Is(a, a) || errors.Is(a, b) {
		t.Error("two errors of New are equal")
	}
}

func TestFormat(t *testing.T) {
	err := Wrap(fs.ErrExist)
	for format, want := range map[string]string{
		"%v": "file already exists", "%s": "file already exists", "%q": `"file already exists"`, "%22s|": "   file already exists|",
	} {
		if got := fmt.Sprintf(format, err); got != want {
			t.Errorf("%s prints %q, want %q", format, got, want)
		}
	}
	for _, err := range []error{err, makeError()} {
		got := strings.Split(fmt.Sprintf("%+v", err), "\n")
		if len(got) < 5 || got[0] != err.Error() || !strings.HasPrefix(got[2], "\t") || !strings.Contains(got[2], "traced_test.go:") || got[len(got)-1] == "" {
			t.Errorf("%%+v prints\n%s", strings.Join(got, "\n"))
		}
	}
}

func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		_ = New("the tank is empty")
	}
}
