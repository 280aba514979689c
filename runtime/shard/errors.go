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
	ErrConfiguration = errors.New("shard: not a configuration")
	// ErrGoexit: a method of the controller ended its goroutine.
	ErrGoexit = errors.New("the method ended its goroutine (runtime.Goexit, perhaps by t.FailNow)")
)

// Error is the error, or the panic, of a method of a controller.
type Error struct {
	Method string // of the controller, or "OnError"
	Worker int    // -1 where none is involved
	Shard  int    // likewise
	Err    error
	Stack  []byte // of a panic, else nil
	signal error  // Done or the context's error, where Err is or wraps it
}

// none is where no worker or shard is involved.
const none = -1

func (e *Error) Error() string {
	if e == nil { // in an interface, where it is easily overlooked
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

// try calls a method of the user's, and returns its error or panic. Where it ends
// its goroutine, and nothing can be returned, ended is the error.
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
