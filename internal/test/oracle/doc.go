// Package oracle is a second implementation of the promise server, for tests alone. It
// was written from the protocol's table of operations, not from package core, and shares
// no code with it or with package protocol. The differential test runs both and compares
// everything that a client can see.
//
//	s := oracle.New(oracle.Config{RetryTimeout: 30_000})
//	response, messages := s.Apply(wall, run, request)
//	messages = s.Tick(wall, run)
//
// Requests, responses and messages are JSON, so a mistake in the types of package
// protocol cannot hide in both implementations.
//
// [Check] sends a random sequence of requests to a server, and compares it with an oracle.
//
// The tests of package server check histories of concurrent clients with [Server.Follow]:
// it returns the states in which the server can be after a response, whenever it carried
// out the request and its timeouts.
//
// # Guarantees
//
// A state is three maps and a list. Each operation reads all of it if that makes the rule
// easier to see: nothing is indexed, nothing is fast. [Server.Clone] is what a store has
// on disk, so a crash is a return to an earlier clone.
//
// # Limits
//
// The limits on the length of a search, of a preload and of a body are not here. Texts of
// refusals and of cursors are free. The order of messages, resumes and
// preload is free: the driver sends messages concurrently, and awaiters use resumes as a set. Cron
// expressions have only numbers. An undelivered unblock message has no age.
//
// # Sources
//
// The table is silent in some places. The following are decided by the formal
// specification of the protocol (spec/02-abstract):
//
//   - task.suspend that answers 200 or 300 forgets the resumes that the task had
//     (external.lean, taskSuspend)
//   - task.suspend compares state and version (409) before it looks at the awaited promises
//     (422): the head of the table has the opposite order, the row of task.suspend has this
//     one (taskSuspend)
//   - task.release, task.halt and the end of a lease keep the resumes (internal.lean)
//   - task.heartbeat extends a lease that is over but was not processed yet (heartbeatOne)
//   - task.continue dispatches at once, even before the instant of resonate:delay (taskContinue)
//   - a promise of a schedule has createdAt = the instant of its occurrence, even if the
//     server was down then (internal.lean, fireOccurrence)
//   - an occurrence whose promise exists already does nothing (state.lean, createIfAbsent)
//   - a schedule that is created again is returned unchanged (scheduleCreate)
//   - callbacks of an awaiter that is settled remain until the awaited promise is settled
//     (internal.lean, resumeOne)
//   - only a Tick changes a promise whose deadline has passed: requests compute its state
//     (state.lean, the reading without materialisation)
//
// These follow from the sentences of the table, with a choice:
//
//   - the row of task.suspend lists "empty/self" as its only refusals with 400. So an awaited
//     promise may have another origin and may be named twice. The formal specification
//     refuses duplicates.
//   - promise.register_callback: "400 other origin" precedes the 404 of a missing promise,
//     whose origin is that of its id
//   - resonate:target is an "address", so another text is refused with 400, and an empty one
//     too: "dispatched once" is a known bug of the original. resonate:delay of a target is an
//     "instant". resonate:origin is an id.
//   - S11 "ids are unique": promiseId of a schedule must have {{.timestamp}}
//   - a promise of a schedule has the tag resonate:schedule, and is its own origin, so that
//     "the root and its child have the same origin". The formal specification has no tags
//     but those of the schedule.
//   - preload is always computed, also for a task that is new or fulfilled
//
// Others have no source, and follow package protocol: fractions of milliseconds are rounded
// up because the SDK sends them, tags and headers have no U+0000, debug.tick answers with an
// empty list, and debug.snap shows what is stored, without projection. Of too many unblock
// messages for an address, the oldest is dropped. Of too many missed occurrences of a schedule,
// the oldest are skipped.
package oracle
