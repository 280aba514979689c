package piper

import (
	"errors"
	"fmt"
	"strings"

	"github.com/topogen/topogen/runtime/internal/chain"
	"github.com/topogen/topogen/runtime/topo"
)

// Errors that Run returns, in addition to the errors of handlers.
var (
	// ErrDrainTimeout: the context of Run ended, and the drain timeout passed before
	// all messages were handled. The error lists what was left on each edge. The
	// failures of handlers that returned only after the timeout are joined to it.
	ErrDrainTimeout = errors.New("pool: drain timeout")
	// ErrCycleGrows: a queue within a cycle has reached its limit, because the cycle
	// sends more messages than it handles. The setting cycle_limit raises the limit.
	ErrCycleGrows = errors.New("pool: a queue within a cycle has reached its limit")
	// ErrGaveUp: an instance failed and was not restarted, and the rest of the topology
	// ran to its end. The error wraps the cause.
	ErrGaveUp = errors.New("pool: an instance failed and is not restarted")
	// ErrAbandoned: more than 64 calls of handlers hang at the same time. Each of them
	// holds a goroutine.
	ErrAbandoned = errors.New("pool: too many handlers hang")
	// ErrHung: a call took longer than the health timeout of its processor. It is also
	// the cause of the context of an abandoned call.
	ErrHung = errors.New("pool: the call takes longer than the health timeout")
	// ErrLateSend: a message was sent after the handler call of its sender had ended,
	// for example from a goroutine that the handler started. It ends Run under a
	// Stepper, in tests and in builds with -race. In other builds it is logged once and
	// counted.
	ErrLateSend = errors.New("pool: a message was sent after the handler call of its sender had ended")
	// ErrCloseHangs: Close of an instance took longer than the health timeout or, if
	// the processor has none, the drain timeout. The goroutine of Close was abandoned,
	// or the process of the instance was killed.
	ErrCloseHangs = errors.New("pool: Close has not returned in time")
	// ErrStays: a client of a cluster has sent a message along an edge that never leaves
	// its node, such as one with route: local.
	ErrStays = errors.New("pool: a client cannot send along an edge that stays on its node")
	// ErrStarted: Run or Stepper was called before.
	ErrStarted = errors.New("pool: the topology was started before")
)

var errShutdown = errors.New("pool: the call takes longer than the shutdown timeout of its group")

var errNotInitialized = errors.New("pool: the context ended before all instances were initialized")

var errInitHangs = errors.New("pool: Init has not returned since the context ended")

var errEnded = errors.New("the call ended its goroutine (runtime.Goexit, perhaps by t.FailNow)")

// HandlerError is the error or the panic of a method of a processor.
type HandlerError struct {
	Processor string // name in the topology file
	Instance  int
	Method    string // "Receive", "Ping", "Serve", "Finish", "Woken", "Init", "Close"
	Edge      string // "parser -> pricing: Order"; "" if the method does not handle a message of an edge
	Message   string // name of the message type, or ""
	Err       error
	Stack     []byte // stack of a panic, or nil
	worker    int    // index of the worker that ran the instance
}

func (e *HandlerError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "processor %q, instance %d: %s", e.Processor, e.Instance, e.Method)
	if e.Edge != "" {
		fmt.Fprintf(&b, " (edge %s)", e.Edge)
	}
	fmt.Fprintf(&b, ": %v", e.Err)
	if e.Stack != nil {
		fmt.Fprintf(&b, "\n%s", e.Stack)
	}
	return b.String()
}

func (e *HandlerError) Unwrap() error { return e.Err }

// crashError returns the error for a goroutine that ended in a handler, by a panic or
// by runtime.Goexit.
func (r *runner) crashError(cause any, stack []byte) error {
	err := errEnded
	if cause != nil {
		err = chain.OfPanic(cause)
	}
	u := r.unit
	if !r.inCall {
		return fmt.Errorf("pool: internal error: %w\n%s", err, stack)
	}
	e := r.w.pool.handlerError(u, r.link, r.method(), err)
	e.Stack = stack
	return e
}

// method is the name of the method that runs, or ran last.
func (r *runner) method() string {
	switch {
	case r.link != nil:
		return "Receive"
	case r.calling != "":
		return r.calling
	case r.unit.out.inServe:
		return "Serve"
	case r.unit.ping != pingNone:
		return "Ping"
	}
	return "Finish" // Finish is called after Ping and Serve have ended
}

// pingResult maps an error of Ping to topo.Done, topo.Idle or the failure.
func pingResult(err error) error {
	if err == topo.Idle || err == topo.Done { // fast path: Ping may return these after each message
		return err
	}
	signal, failure := chain.Sort(err, topo.Done, topo.Idle)
	if signal != nil {
		return signal
	}
	return failure
}
