package errtop

import (
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/topogen/topogen/runtime/internal/chain"
)

// traced is an error with the stack at which it was made. Program counters are cheap to
// record; they are converted to text when they are printed.
type traced struct {
	reason string // set by New
	err    error  // set by Wrap, else nil
	depth  int
	pcs    [stackMax]uintptr
}

// New returns an error with that reason and the stack of the caller.
func New(reason string) error {
	t := &traced{reason: reason}
	t.depth = runtime.Callers(2, t.pcs[:])
	return t
}

// Wrap adds the stack of the caller to err. It returns err unchanged if err is nil or
// already has a stack.
func Wrap(err error) error {
	if err == nil || StackOf(err) != nil {
		return err
	}
	t := &traced{err: err}
	t.depth = runtime.Callers(2, t.pcs[:])
	return t
}

// StackOf returns the stack of err, or of the first error that it wraps, that New, Wrap
// or Catch made. It returns nil if there is none. Do not modify the result.
func StackOf(err error) Stack {
	if t, ok := chain.As[*traced](err); ok {
		return Stack(t.pcs[:t.depth:t.depth])
	}
	return nil
}

func (t *traced) Error() string {
	if t.err != nil {
		return t.err.Error()
	}
	return t.reason
}

func (t *traced) Unwrap() error { return t.err }

// Format prints the stack for %+v, and otherwise the result of Error.
func (t *traced) Format(f fmt.State, verb rune) {
	if verb != 'v' || !f.Flag('+') {
		fmt.Fprintf(f, fmt.FormatString(f, verb), t.Error())
		return
	}
	if t.err != nil {
		fmt.Fprintf(f, "%+v\n", t.err)
	} else {
		fmt.Fprintln(f, t.reason)
	}
	// Format cannot return the error of the writer.
	_, _ = io.WriteString(f, strings.TrimSuffix(Stack(t.pcs[:t.depth]).String(), "\n"))
}

// panicError returns the error for a panic with cause, or for the end of the goroutine if
// cause is nil. A deferred function that has recovered calls it. The stack is that at
// which the panic was raised.
func panicError(cause any) error {
	t := &traced{}
	if cause == nil {
		t.reason = "the call ended its goroutine (runtime.Goexit, perhaps by t.FailNow)"
	} else {
		t.err = chain.OfPanic(cause)
	}
	var pcs [stackMax + recoverMax]uintptr
	t.depth = copy(t.pcs[:], fromPanic(pcs[:runtime.Callers(3, pcs[:])]))
	return t
}
