package pool

import "github.com/topogen/topogen/runtime/piper"

// Errors that Run returns, in addition to the errors of handlers.
var (
	// ErrDrainTimeout: the context of Run ended, and the drain timeout passed before
	// all messages were handled. The error lists what was left on each edge. The
	// failures of handlers that returned only after the timeout are joined to it.
	ErrDrainTimeout = piper.ErrDrainTimeout
	// ErrCycleGrows: a queue within a cycle has reached its limit, because the cycle
	// sends more messages than it handles. The setting cycle_limit raises the limit.
	ErrCycleGrows = piper.ErrCycleGrows
	// ErrGaveUp: an instance failed and was not restarted, and the rest of the topology
	// ran to its end. The error wraps the cause.
	ErrGaveUp = piper.ErrGaveUp
	// ErrAbandoned: more than 64 calls of handlers hang at the same time. Each of them
	// holds a goroutine.
	ErrAbandoned = piper.ErrAbandoned
	// ErrHung: a call took longer than the health timeout of its processor. It is also
	// the cause of the context of an abandoned call.
	ErrHung = piper.ErrHung
	// ErrLateSend: a message was sent after the handler call of its sender had ended,
	// for example from a goroutine that the handler started. It ends Run under a
	// Stepper, in tests and in builds with -race. In other builds it is logged once and
	// counted.
	ErrLateSend = piper.ErrLateSend
	// ErrCloseHangs: Close of an instance took longer than the health timeout or, if
	// the processor has none, the drain timeout. The goroutine of Close was abandoned,
	// or the process of the instance was killed.
	ErrCloseHangs = piper.ErrCloseHangs
	// ErrStays: a client of a cluster has sent a message along an edge that never leaves
	// its node, such as one with route: local.
	ErrStays = piper.ErrStays
	// ErrStarted: Run or Stepper was called before.
	ErrStarted = piper.ErrStarted
)

// ErrNoStepper is the error of the methods Deliver and Ping of the graph if the
// topology does not run under a Stepper.
var ErrNoStepper = piper.ErrNoStepper

// HandlerError is the error or the panic of a method of a processor. Its fields
// Processor, Instance, Method, Edge and Message name the place. Err is the error, which
// Unwrap returns, and Stack is the stack of a panic.
type HandlerError = piper.HandlerError
