// Package supervise decides what happens to instances that fail, and to inputs that
// receive no messages for too long.
//
// A [Supervisor] decides about the instances of a topology, which it calls children.
// It is the [piper.Supervisor] that generated code passes to a pool if the topology
// file uses restart, health or groups:
//
//	s := supervise.New(supervise.Spec{Processors: []supervise.Processor{{
//		Name: "camera", Instances: 1, Supervised: true,
//		Policy: supervise.OnFailure, MaxRestarts: 3, Window: time.Minute,
//		Delay: time.Second, MaxDelay: 10 * time.Second,
//	}}})
//	s.Step(0, piper.ChildEvent{Kind: piper.ChildFailed, Err: err}) // wait 1s
//	s.Step(time.Second, piper.ChildEvent{Kind: piper.ChildDue})    // start it
//
// [Inputs] is the circuit breaker for the inputs of one instance. A [Tracked] holds
// what the handlers of an instance may read about one of its inputs.
//
// # Guarantees
//
// A decision about a child that has ended checks these in order, as dora's fault
// tolerance does: policy, disabled, window, limit, delay, start. Whether the child is
// disabled is checked again directly before the start. In a group the intensity is
// checked between limit and delay. Each child has its own count of restarts and its
// own delay.
//
// No child is started after its [piper.ChildInputsDone], which means that its inputs
// are closed and drained, or that it has no inputs and the topology stops. A stop of the
// topology does not disable the restart of any other child. A child has at most one order
// in progress.
//
// The other children of a group are stopped one by one, last first. After all of them
// have stopped, they are started one by one: each starts when the one before it runs.
// An Erlang/OTP supervisor does the same, and the tests replay what one did. Delays,
// budgets of single children and inputs that are done do not exist in OTP, and neither
// do children that have ended cleanly but still handle messages. Such children can fail,
// and can be stopped and started with the others.
//
// Every event is accepted in every state. An event that does not fit the state, such as
// ChildStopped of a child that was not ordered to stop, changes nothing.
//
// # Limits
//
// A Supervisor has no clock, no goroutines and no locks. Its owner passes the time, and
// makes one call at a time of a Supervisor or an Inputs. A Supervisor does not examine
// the errors of children. It only reads the text of an error when the text of its own
// error is read.
//
// # Design
//
// Both types take values and return values. The tests are therefore transcripts in
// files (testdata) and comparisons with models, and no test waits for time to pass.
// docs/howto/failures.md has the rules.
package supervise
