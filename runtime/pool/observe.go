package pool

import "github.com/topogen/topogen/runtime/piper"

// Observer hears of what the pool does of its own accord: Moved and Finished. It is
// called on the pool's goroutines and must not block; a panic ends Run.
type Observer = piper.Observer

// FaultObserver is an [Observer] that also hears of failures and what is done about
// them: Failed, Restarted, GaveUp, InputBroken and InputRecovered.
type FaultObserver = piper.FaultObserver

// StartObserver is an [Observer] that also hears of restarts that fail: NotStarted.
type StartObserver = piper.StartObserver

// Recorder keeps the errors and panics of handlers; errtop.Keeper is one. Its methods
// Record and Close are called by several goroutines at once, and never while a handler
// succeeds.
type Recorder = piper.Recorder

// Stepper runs a whole topology in the goroutine that calls it, one handler call a
// step, under a clock of its own. The same seed, and the same messages from outside,
// give the same trace. Its methods are Step, Run, Advance, Stop, Now, Err, Trace and
// Hang ([piper.Stepper]).
type Stepper = piper.Stepper
