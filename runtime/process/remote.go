package process

import (
	"context"
	"fmt"
	"strings"

	"github.com/topogen/topogen/runtime/internal/chain"
	"github.com/topogen/topogen/runtime/topo"
)

const textMax = 64 << 10 // bytes of an error's text, and of a stack: it is read by people

// sentinels are the errors that keep their identity across the border. Their order
// is part of the protocol.
var sentinels = []error{
	topo.Done, topo.Idle, topo.ErrFull, topo.ErrStopping, topo.ErrClosed, topo.ErrNoInstance,
	context.Canceled, context.DeadlineExceeded, ErrTooLarge, ErrEncode, ErrDecode,
}

// RemoteError is an error of a handler, or its panic, as it comes out of its
// process. errors.Is finds in it those of package topo and of package context that
// the handler's error wrapped; of everything else the text is left.
type RemoteError struct {
	Text  string
	Stack []byte // of a panic, after which the process ends; else nil
	is    uint32 // a bit for each sentinel
}

func (e *RemoteError) Error() string {
	if e.Stack == nil {
		return e.Text
	}
	return e.Text + "\n" + string(e.Stack)
}

func (e *RemoteError) Is(target error) bool {
	for i, s := range sentinels {
		if s == target {
			return e.is&(1<<i) != 0
		}
	}
	return false
}

// How an error begins.
const (
	errorNone     = iota
	errorSentinel // its index
	errorText     // the bits of RemoteError, the text, the stack
)

// appendError appends an error of a handler, with the stack of its panic or nil.
// The methods of err are the user's.
func appendError(b []byte, err error, stack []byte) []byte {
	if err == nil {
		return append(b, errorNone)
	}
	for i, s := range sentinels {
		if err == s {
			return append(b, errorSentinel, byte(i))
		}
	}
	is := 0
	for i, s := range sentinels {
		if found, _ := chain.Sort(err, s); found != nil {
			is |= 1 << i
		}
	}
	_, err = chain.Sort(err) // where its methods fail: one that says so
	text := strings.ToValidUTF8(fmt.Sprint(err), "\uFFFD")
	b = appendNumber(append(b, errorText), is)
	b = appendSized(b, cut(text))
	return appendSized(b, cut(stack))
}

func cut[B []byte | string](text B) B { return text[:min(len(text), textMax)] }

// error takes an error off the fields; what it returns holds nothing of them.
func (f *fields) error() error {
	switch f.byte() {
	case errorNone:
		return nil
	case errorSentinel:
		if i := int(f.byte()); i < len(sentinels) {
			return sentinels[i]
		}
	case errorText:
		e := &RemoteError{is: uint32(f.number()), Text: string(f.sized())}
		if stack := f.sized(); len(stack) > 0 {
			e.Stack = append(e.Stack, stack...)
		}
		return e
	}
	f.broken = true
	return nil
}
