// Package durable runs durable functions: functions that continue after the process that
// runs them has died, on another process, without repeating their finished steps.
//
//	func (o *Orders) ReceivePlaceOrder(ctx durable.Context, m PlaceOrder, out *OrdersSender) (Receipt, error) {
//		charge, err := durable.Step(ctx, "charge", func(c context.Context) (Charge, error) {
//			return o.bank.Charge(c, ctx.ID(), m.Amount) // the id makes a repetition harmless
//		})
//		if err != nil {
//			return Receipt{}, err
//		}
//		if err := durable.Sleep(ctx, 24*time.Hour); err != nil {
//			return Receipt{}, err
//		}
//		parcel, err := out.StartShip(ctx, Ship{m.ID}) // along a durable edge
//		…
//		number, err := parcel.Wait(ctx)
//		return Receipt{charge.ID, number}, err
//	}
//
// A topology generates the registration and the typed senders. Without a topology, a program
// makes a [Worker] with its functions:
//
//	w, err := durable.NewWorker(durable.Config{
//		Backend:   engine,
//		Group:     "shop",
//		Functions: []durable.Function{durable.Func("place", place)},
//	})
//	go w.Serve(ctx)
//	receipt, err := durable.Invoke[Receipt](ctx, w, durable.Call{ID: "order-17", Func: "place", Arg: order})
//
// # Replay
//
// Each durable call of a function (Step, Sleep, After, Now, Start, Any, Version) has a
// position: 1 for the first call, 2 for the second. Its result is recorded in a promise whose
// id is the id of the execution and the position: order-17:#2, and order-17:#2.1 for the first
// call of the execution order-17:#2. The ids of calls that a program gives never contain a
// colon with a single #, so they are never those of records: see [PromiseID]. When an execution waits, its goroutine ends: deferred
// functions run, and durable calls in them end at once. When it is resumed, on any process,
// the function is called again from its beginning, and the durable calls return the
// recorded results, until the function is where it was.
//
// So between its durable calls a function must do the same on each replay. It must not depend
// on the time, on random numbers, on the order of a map, on other goroutines or on the fields
// of its processor, except in steps. If it calls a step with another name than the recorded
// one, the task is halted with [ErrDiverged]. Context.Version is for deliberate changes.
//
// # Guarantees
//
// A result that Step returned is on disk, and its function does not run again. A step that
// was running when the process died runs again: at least once is the guarantee for the
// effect of a step. Nothing is written before the function of a step runs; its promise is
// created and settled after that, with one write.
//
// Only the worker that holds the lease of a task records results. A worker that was
// paused for longer than its lease cannot record anything, because each write names the
// version of the task, and the version increases whenever a worker acquires it.
//
// Start returns when the promise of the call is on disk. [StartAll] starts many calls with one
// write, and [Any] with a timer of [After] waits for a call with a timeout.
//
// # Failures
//
// A step that returns an error is recorded as failed; [Retry] repeats it before. A function
// that returns an error or panics has failed. With Function.Retry, another attempt begins
// after a delay, which is on disk. It sees the records up to the first failure; that step
// runs again, and everything after it is new. [Final] marks an error that is not retried.
// After the last attempt the promise is rejected with the error.
//
// # Limits
//
// Results and arguments are JSON of at most 3,096,576 bytes, so that they fit into a request
// of 4 MiB as base64 text. The id of an execution has at most 2,000 bytes. An execution has at most Config.Records records: a loop without end
// must continue in a child. A durable call takes its context from the
// goroutine of the function only: goroutines that the function starts must not make durable
// calls; calls that run at the same time are started with [Start].
//
// # Tests
//
// Package local is a server in virtual time. With Config.Manual a worker has no goroutines of
// its own, and everything runs in the goroutine of the test: see the example. The Stepper of a
// topology does the same.
//
// [Replay] runs recorded executions through functions that were changed, and reports those
// that would diverge.
//
// # Design
//
// The goroutine of an execution is ended with runtime.Goexit when it has to wait. A panic could
// be caught by the user, and a parked goroutine would need memory for each of a million
// sleeping executions. So the function runs in a goroutine of its own, and a processor
// instance that calls [Activation.Run] waits for it.
//
// The form of parameters and results is that of the SDKs for TypeScript and others: base64
// text of JSON. A call from Go can be answered in TypeScript, and the reverse.
package durable
