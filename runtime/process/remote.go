package process

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/topogen/topogen/runtime/internal/chain"
	"github.com/topogen/topogen/runtime/topo"
)

const textMax = 64 << 10 // bytes of an error's text, and of a stack, because only people read them

// sentinels are the errors that keep their identity between processes. Their order is
// part of the protocol.
var sentinels = []error{
	topo.Done, topo.Idle, topo.ErrFull, topo.ErrStopping, topo.ErrClosed, topo.ErrNoInstance,
	context.Canceled, context.DeadlineExceeded, ErrTooLarge, ErrEncode, ErrDecode,
}

// mixed is the bit of an error that contains a failure: it matches no sentinel, or is a list with
// an error that is not a sentinel.
const mixed = 1 << 30

// RemoteError is an error or a panic of a handler in another process. errors.Is matches
// the errors of package topo and of package context that the handler's error wrapped. Of
// all other errors only the text is kept.
type RemoteError struct {
	Text  string
	Stack []byte // of a panic, after which the process exits; else nil
	bits  uint32 // a bit for each sentinel that the error matches, one for each that is enough as a signal, and mixed
}

func (e *RemoteError) Error() string {
	if e.Stack == nil {
		return e.Text
	}
	return e.Text + "\n" + string(e.Stack)
}

// Unwrap returns the errors of package topo and of package context, and an error with the
// text if the handler's error was more than these. They count as the same signal as the
// handler's error, see [chain.Sort].
func (e *RemoteError) Unwrap() error {
	var all []error
	var signals chain.AnyOf
	for i, s := range sentinels {
		if e.bits&(1<<i) != 0 {
			all = append(all, s)
		}
		if e.bits&(1<<(len(sentinels)+i)) != 0 {
			signals = append(signals, s)
		}
	}
	if e.bits&mixed != 0 || signals != nil { // then the signals count, and the list below does not
		all = append(all, errors.New(e.Text))
	}
	return append(signals, errors.Join(all...))
}

// First byte of an encoded error.
const (
	errorNone     = iota
	errorSentinel // followed by its index
	errorText     // followed by the bits of RemoteError, the text, the stack
)

// appendError appends an error of a handler, with the stack of its panic or nil. The
// methods of err are user code, which may fail.
func appendError(b []byte, err error, stack []byte) []byte {
	if err == nil {
		return append(b, errorNone)
	}
	for i, s := range sentinels {
		if err == s {
			return append(b, errorSentinel, byte(i))
		}
	}
	bits := 0
	for i, s := range sentinels {
		if chain.Is(err, s) {
			bits |= 1 << i
		}
		if signal, _ := chain.Sort(err, s); signal != nil {
			bits |= 1 << (len(sentinels) + i)
		}
	}
	if signal, _ := chain.Sort(err, sentinels...); signal == nil {
		bits |= mixed
	}
	_, err = chain.Sort(err) // if a method of err panics, err is replaced by an error that says so
	text := strings.ToValidUTF8(fmt.Sprint(err), "\uFFFD")
	b = appendNumber(append(b, errorText), bits)
	b = appendSized(b, cut(text))
	return appendSized(b, cut(stack))
}

func cut[B []byte | string](text B) B { return text[:min(len(text), textMax)] }

// error decodes an error from the fields. The result shares no memory with them.
func (f *fields) error() error {
	switch f.byte() {
	case errorNone:
		return nil
	case errorSentinel:
		if i := int(f.byte()); i < len(sentinels) {
			return sentinels[i]
		}
	case errorText:
		e := &RemoteError{bits: uint32(f.number()), Text: string(f.sized())}
		if stack := f.sized(); len(stack) > 0 {
			e.Stack = append(e.Stack, stack...)
		}
		return e
	}
	f.broken = true
	return nil
}
