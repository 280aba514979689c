package shard

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/topogen/topogen/runtime/internal/chain"
)

var (
	// ErrConfiguration: a configuration does not give each shard to one worker.
	// The error says which shard.
	ErrConfiguration = errors.New("shard: invalid configuration")
	// ErrGoexit: a method of the controller ended its goroutine.
	ErrGoexit = errors.New("the method ended its goroutine (runtime.Goexit, perhaps by t.FailNow)")
)

// Error is the error, or the panic, of a method of a controller.
type Error struct {
	Method string // of the controller, or "OnError"
	Worker int    // -1 if the error is not about one worker
	Shard  int    // -1 if the error is not about one shard
	Err    error
	Stack  []byte // of a panic, else nil
	signal error  // Done or the context's error, if Err is or wraps it
}

// none is the Worker or Shard of an error that is not about one.
const none = -1

func (e *Error) Error() string {
	if e == nil { // easily overlooked in an interface
		return "shard: a nil *Error"
	}
	var b strings.Builder
	b.WriteString("shard: " + e.Method)
	if e.Shard >= 0 {
		fmt.Fprintf(&b, " of shard %d", e.Shard)
	}
	if e.Worker >= 0 {
		fmt.Fprintf(&b, " on worker %d", e.Worker)
	}
	fmt.Fprintf(&b, ": %v", e.Err)
	if e.Stack != nil {
		fmt.Fprintf(&b, "\n%s", e.Stack)
	}
	return b.String()
}

func (e *Error) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Err
}

// try calls a method of the user and returns its error or panic. If the method ends its
// goroutine, try cannot return, and sets *ended instead.
func try(ctx context.Context, ended *error, method string, worker, shard int, call func() error) (failure *Error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		e := &Error{Method: method, Worker: worker, Shard: shard}
		if cause := recover(); cause != nil {
			e.Err, e.Stack = chain.OfPanic(cause), debug.Stack()
			failure = e
			return
		}
		e.Err = ErrGoexit
		*ended = e
	}()
	err := call()
	returned = true
	if err == nil {
		return nil
	}
	e := &Error{Method: method, Worker: worker, Shard: shard}
	if e.signal, e.Err = chain.Sort(err, Done, ctx.Err()); e.signal != nil {
		e.Err = err
	}
	return e
}
