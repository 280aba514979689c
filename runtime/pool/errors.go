package pool

import "github.com/topogen/topogen/runtime/piper"

// What Run returns, besides the errors of handlers.
var (
	// ErrDrainTimeout: the context ended and the drain timeout passed before
	// everything was handled. The error says what was left on each edge. Beside it
	// are the failures of handlers that came back only then.
	ErrDrainTimeout = piper.ErrDrainTimeout
	// ErrCycleGrows: a queue within a cycle has reached its limit, as the cycle sends
	// more messages than it handles. The setting cycle_limit raises it.
	ErrCycleGrows = piper.ErrCycleGrows
	// ErrGaveUp: an instance has failed for good, and the rest went on to its end.
	// The error wraps why.
	ErrGaveUp = piper.ErrGaveUp
	// ErrAbandoned: more handlers hang at once than a process should hold on to.
	ErrAbandoned = piper.ErrAbandoned
	// ErrHung: a call took longer than the health timeout of its processor allows.
	// It is the cause of the context of a call that was abandoned.
	ErrHung = piper.ErrHung
	// ErrLateSend: a message was sent with a sender whose call had ended, perhaps from a
	// goroutine. It ends Run under a Stepper, in tests and in builds with -race;
	// otherwise it is logged once and counted.
	ErrLateSend = piper.ErrLateSend
	// ErrCloseHangs: Close of an instance took longer than its health timeout or,
	// where it has none, the drain timeout. It was left behind, or its process killed.
	ErrCloseHangs = piper.ErrCloseHangs
	// ErrStarted: Run or Stepper was called before.
	ErrStarted = piper.ErrStarted
)

// ErrNoStepper is what Deliver and Ping of a tree return while the topology does not
// run under a Stepper.
var ErrNoStepper = piper.ErrNoStepper

// HandlerError is the error, or the panic, of a method of a processor. It has the
// fields Processor, Instance, Method, Edge and Message, which say where, Err, to which
// it unwraps, and the Stack of a panic.
type HandlerError = piper.HandlerError
