package errtop

import (
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/topogen/topogen/runtime/internal/chain"
)

// traced is an error with the stack of where it was made. Program counters cost
// little to take; they become text when somebody asks.
type traced struct {
	reason string // of New
	err    error  // of Wrap, else nil
	depth  int
	pcs    [stackMax]uintptr
}

// New returns an error with that reason and the stack of the caller.
func New(reason string) error {
	t := &traced{reason: reason}
	t.depth = runtime.Callers(2, t.pcs[:])
	return t
}

// Wrap gives err the stack of the caller. An error that has a stack already, or
// wraps one that has, is returned as it is, and so is nil.
func Wrap(err error) error {
	if err == nil || StackOf(err) != nil {
		return err
	}
	t := &traced{err: err}
	t.depth = runtime.Callers(2, t.pcs[:])
	return t
}

// StackOf returns the stack that err, or the first error that it wraps, got from
// New, Wrap or Catch; nil where there is none. It must not be changed.
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

// Format prints the stack for %+v, and else what Error returns.
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
	// The error is that of the state's writer, which has nobody to tell it to.
	_, _ = io.WriteString(f, strings.TrimSuffix(Stack(t.pcs[:t.depth]).String(), "\n"))
}

// panicError is the error for a panic with cause, nil where the goroutine was
// ended instead. It is called by the deferred function that has recovered, and
// its stack is that of who panicked.
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
