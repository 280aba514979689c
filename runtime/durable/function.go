package durable

import (
	"encoding/json"
	"fmt"
	"time"
)

// A Handler runs one activation of a durable function. arg is the JSON of the message. The
// result is encoded as JSON.
type Handler func(ctx Context, arg json.RawMessage) (any, error)

// A Function is a durable function that a worker offers to its group.
type Function struct {
	// Name is the func in the parameter of the promises that call it. For an edge of a
	// topology it is from.to.Message.
	Name string
	// Run is called for each activation, in a goroutine of its own. It is not used if
	// Dispatch is set.
	Run Handler
	// Dispatch receives each activation instead. It must return at once, and see to it
	// that Activation.Run or Activation.Release is called. So generated code queues the
	// activation at the instance of a processor, which calls Run.
	Dispatch func(*Activation)
	// Rejecting is called when the last attempt has failed, before the promise is rejected.
	// It runs in the goroutine of the function, and again on another worker if this one
	// loses the task before the rejection is on disk. Generated code sends the dead letter
	// here. It may be nil.
	Rejecting func(a *Activation, err error)
	// Retry says how often a failed execution is attempted. The default is once.
	Retry Retry
	// Limit bounds how many executions run in this process. By default there is no limit.
	Limit Limit
}

// Retry says how often something is attempted, and how long to wait between attempts. The
// delay doubles from one attempt to the next, up to MaxDelay (0: no limit). A random part
// of it, of at most Jitter (0 to 1), is subtracted. A delay between attempts at
// an execution is on disk, and so is a delay of more than a second between attempts at a
// step: nothing waits for it in memory.
//
// Retry is an option of Step, and a field of Function.
type Retry struct {
	Attempts int // how many attempts in all; 0 and 1 mean one attempt
	Delay    time.Duration
	MaxDelay time.Duration
	Jitter   float64
}

// Limit bounds how many executions of a function run at once in a process, and how often
// they start. Executions with different keys take turns. Executions that wait for their
// turn are not acquired, so another process of the group can take them.
type Limit struct {
	// Key returns the key to which the limits apply. nil means one key for all.
	Key func(arg json.RawMessage) (string, error)
	// Concurrency is how many executions of a key run at once; suspended ones do not
	// count. 0 means no limit.
	Concurrency int
	// Rate is how many executions of a key start for the first time in each Period. Up to
	// Rate of them may start at once. 0 means no limit.
	Rate   int
	Period time.Duration // the default is a second
}

func (l Limit) isZero() bool { return l.Concurrency == 0 && l.Rate == 0 }

// Func makes a Function of a typed function.
func Func[M, R any](name string, run func(Context, M) (R, error)) Function {
	return Function{Name: name, Run: func(ctx Context, arg json.RawMessage) (any, error) {
		var m M
		if err := Decode(arg, &m); err != nil {
			return nil, err
		}
		return run(ctx, m)
	}}
}

// Decode decodes the argument of a call. Its error matches ErrArgument and is Final, because another
// attempt has the same argument.
func Decode(arg json.RawMessage, m any) error {
	if err := json.Unmarshal(arg, m); err != nil {
		return Final(fmt.Errorf("%w: %w", ErrArgument, err))
	}
	return nil
}
