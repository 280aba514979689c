// Package oracle is a second implementation of the promise server, for tests alone. It
// was written from the protocol's table of operations, not from package core, and shares
// no code with it. The differential test runs both and compares everything that a client
// can see.
//
//	s := oracle.New(oracle.Config{RetryTimeout: 30_000})
//	response, messages := s.Apply(wall, run, request)
//	messages = s.Tick(wall, run)
//
// Requests, responses and messages are JSON, so a mistake in the types of package
// protocol cannot hide in both implementations.
//
// # Guarantees
//
// A state is three maps and a list. Each operation reads all of it if that makes the rule
// easier to see: nothing is indexed, nothing is fast. [Server.Clone] is what a store has
// on disk, so a crash is a return to an earlier clone.
//
// # Sources
//
// The table is silent in some places. The following are decided by the formal
// specification of the protocol (spec/02-abstract):
//
//   - task.suspend that names an awaited promise twice: 400 (external.lean, taskSuspend)
//   - task.suspend that answers 300 forgets the resumes that the task had (taskSuspend)
//   - task.suspend that succeeds forgets them too (taskSuspend)
//   - task.release, task.halt and the end of a lease keep the resumes (internal.lean)
//   - task.heartbeat extends a lease that is over but was not processed yet (heartbeatOne)
//   - task.continue dispatches at once, even before the instant of resonate:delay (taskContinue)
//   - a promise of a schedule has createdAt = the instant of its occurrence, even if the
//     server was down then (internal.lean, fireOccurrence)
//   - an occurrence whose promise exists already does nothing (state.lean, createIfAbsent)
//   - a schedule that is created again is returned unchanged (scheduleCreate)
//   - a fulfilled task has no resumes, and a settled promise no callbacks (state.lean)
//   - callbacks of an awaiter that is settled remain until the awaited promise is settled
//     (internal.lean, resumeOne)
//   - only a Tick changes a promise whose deadline has passed: requests compute its state
//     (state.lean, the reading without materialisation)
//
// These follow from the sentences of the table, with a choice:
//
//   - "guards in this order: 400, 404, 422, 409" holds for all kinds, so task.suspend
//     answers 422 for an unknown awaited promise before it compares the version
//   - an action of task.suspend is a promise.register_callback, so it has the same guard
//     against another origin
//   - the guard against another origin needs both records, because the origin can be a
//     tag: it comes after the 404 and 422 of missing promises
//   - preload is always computed, also when the task is fulfilled or new
//   - messages of a step have no order, nor have resumes and preload: the driver sends
//     them concurrently, and awaiters use resumes as a set
package oracle
