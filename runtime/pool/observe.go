package pool

import "github.com/topogen/topogen/runtime/piper"

// Observer is an interface with the methods Moved, called when an instance moves to
// another worker, and Finished, called when a processor has finished. The pool calls
// them on its own goroutines, so they must not block. A panic ends Run.
type Observer = piper.Observer

// FaultObserver is an [Observer] that is also called on failures and on the reactions
// to them. Its additional methods are Failed, Restarted, GaveUp, InputBroken and
// InputRecovered.
type FaultObserver = piper.FaultObserver

// StartObserver is an [Observer] that is also called when a restart fails. Its
// additional method is NotStarted.
type StartObserver = piper.StartObserver

// Recorder stores the errors and panics of handlers. errtop.Keeper implements it.
// Several goroutines call its methods Record and Close at the same time. They are not
// called while handlers succeed.
type Recorder = piper.Recorder

// Stepper runs a whole topology in the goroutine that calls it, one handler call at a
// time and with a simulated clock. The same seed and the same messages from outside
// give the same trace. Its methods are Step, Run, Advance, Stop, Close, Now, Err, Trace and
// Hang ([piper.Stepper]).
type Stepper = piper.Stepper
