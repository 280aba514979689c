// Package supervise decides what becomes of instances that fail, and of inputs
// that fall silent.
//
// A [Supervisor] decides about the instances of a topology, which it calls
// children. It is the [piper.Supervisor] that generated code gives to a pool whose
// file says restart, health or groups:
//
//	s := supervise.New(supervise.Spec{Processors: []supervise.Processor{{
//		Name: "camera", Instances: 1, Supervised: true,
//		Policy: supervise.OnFailure, MaxRestarts: 3, Window: time.Minute,
//		Delay: time.Second, MaxDelay: 10 * time.Second,
//	}}})
//	s.Step(0, piper.ChildEvent{Kind: piper.ChildFailed, Err: err}) // wait 1s
//	s.Step(time.Second, piper.ChildEvent{Kind: piper.ChildDue})    // start it
//
// [Inputs] is the circuit breaker of the inputs of one instance, and a [Tracked]
// holds what its handlers may ask about one of them.
//
// # Guarantees
//
// The decision about a child that has ended is taken in this order, that of
// dora's fault tolerance: policy, disabled or not, window, limit, delay, start;
// and whether it is disabled is looked at again directly before the start. In a
// group the intensity is looked at between limit and delay. Restarts and delays
// are counted for each child by itself.
//
// No child is started after its [piper.ChildInputsDone]: its inputs are closed and
// drained, or it has none and the topology stops. A stop alone disables no other
// restart. There is never more than one order under way for a child. The others of a group are stopped one by one, last first, and all of
// them have stopped before the first is started; each is started when the one
// before runs. That is how an Erlang/OTP supervisor does it, and the tests retell
// what one did. What such a supervisor has not are delays, budgets of single
// children, inputs that are done, and children that have said their end and still
// handle what comes; they can fail, and be stopped and started with the others.
//
// Every event is answered in every state, whoever sends it. One that does not fit,
// such as ChildStopped of a child that was not to stop, changes nothing.
//
// # Limits
//
// A Supervisor has no clock, no goroutines and no locks: its owner tells it the
// time, and calls it and the Inputs one at a time. It does not look at errors, not
// even for their text, before somebody asks for its own.
//
// # Design
//
// All of this is values in, values out, so the tests tell stories in files
// (testdata), compare with models, and need no time to pass.
// docs/explanation/supervision.md has the pictures.
package supervise
