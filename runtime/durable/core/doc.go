// Package core is the state machine of durable promises: promises, tasks, callbacks,
// listeners and schedules, as a function of (tables, operation, time). It has no clock,
// no goroutine, no randomness and no I/O.
//
//	c, err := core.New(core.Config{})
//	result, effects := c.Step(kv, protocol.PromiseGet{ID: "order-17"}, now)
//	if result.Fault != nil {
//		// roll the transaction back: the store is corrupt
//	}
//	// commit, answer with result, then send the effects
//
// A driver (package engine) gives it a transaction of a store and the time. It commits
// what several operations have written at once. In addition to the operations of the
// protocol it carries out [Tick] when [Next] says that a timeout is due, and [Delivered]
// when a connection took an unblock message. When the driver starts, it sends [Executes], and the
// [Unblocks] of the [UnblockAddresses]. [SetBack] prepares a store for an earlier time.
//
// # Guarantees
//
// A step is a function of the entries of the store, the operation and the time. Equal
// steps on equal stores write equal bytes.
//
// An operation that is refused (a Status of 400 or more) has written nothing, so several
// operations can share a transaction. Reads write nothing.
//
// A timeout always wins: at and after its deadline a promise is settled and its task is
// fulfilled in every answer and for every guard, whether or not a Tick has stored that
// (debug.snap alone shows what is stored). No task is offered to a worker, resumed, leased,
// halted or continued after the deadline of its promise.
//
// Everything that is read from the store is checked, by a checksum over table, key and
// value. A byte that flipped is a [CorruptError] in Result.Fault, with table and key.
//
// The time for a step does not depend on the number of promises. It grows with what the
// step concerns: the listeners and callbacks of a promise that is settled, the actions of
// a suspension, the promises of a branch for a preload.
//
// # Guards
//
// The guards of an operation are checked in the order 400, 404, 422, 409, with one
// exception: task.suspend checks the task (404, 409) before the awaited promises (422), as
// the formal specification does. Where the sources leave a choice:
//
//   - resonate:target must be an address (see below), an empty one too is refused with 400.
//     resonate:delay must be a decimal number if the promise has a target.
//   - promise.register_callback compares the origins of both promises first (400). The
//     origin of a promise that does not exist is that of its id. An awaiter without a target
//     and an awaited promise that is internal get 422, in this order.
//   - task.suspend gets 422 if an awaited promise does not exist or is internal, even if
//     another one is settled. It does not compare origins. A promise may be named twice.
//   - task.fence with an action whose shape is wrong gets 400 itself. The inner answer has
//     404, and 400 with Config.Strict for a promise with timer and target.
//   - schedule.create requires {{.timestamp}} in promiseId, because otherwise all
//     occurrences have the same promise. Cron expressions are in UTC, without a time zone.
//   - The origin of a promise is its tag resonate:origin, else the origin in the head of the
//     request, else the part of its id before the first ":", else before the first ".".
//     The promise of a schedule is its own origin, unless it has the tag.
//
// A promise is external if it has a target, is a timer, or has resonate:external=true or
// resonate:scope=global. Only external promises have a timeout entry and can be awaited.
//
// # Addresses
//
//	poll://any@group        any process of the group
//	poll://any@group/pid    this process if it is connected, else any of the group
//	poll://uni@group/pid    only this process
//	http://host/path        a server that accepts messages by POST; also https
//
// # Searches
//
// The results are ordered by id, as bytes, and reflect the projection. A page has
// at most 100 results if the search names no limit, and at most 4 MiB. It has a cursor if
// more records may match. A page looks at 10,000 records at most: where no index fits the
// filter, a page can be short or empty and yet have a cursor. There are indexes for all
// states and for all tags, except for resolved promises, fulfilled tasks and those tags of
// the protocol that have few values (target, scope, timer, external, delay, prefix).
//
// # Schedules
//
// Each occurrence creates one promise, also if it was missed. The createdAt of the promise
// is the time of the occurrence, however late that is. If its deadline has passed, it is
// settled at once. An occurrence whose promise exists already is not repeated. If more than
// Config.MissedMax occurrences are due at a Tick, only the newest of them create promises,
// and Result.Gaps says which ones were skipped.
//
// # Limits
//
// Those of package protocol. A value has at most 64 MiB. A preload has at most 10,000
// promises and 4 MiB. A Tick processes at most Tick.Limit timeouts; it processes the
// timeouts of tasks only when no promise is overdue. A promise can have any number of
// callbacks and listeners: one step settles it and notifies all of them.
//
// An address has at most Config.UnblocksMax undelivered messages, and each message is kept
// for Config.UnblockAge. Messages beyond that are dropped and reported as effects.
//
// # Design
//
// A record begins with its version. Callbacks, listeners and resumes are entries of their
// own, so a promise with many of them is not rewritten for each. The record of a task
// repeats the deadline and the target of its promise, so that a retry, a heartbeat and a
// resume need not read the promise. Deadlines, delays and schedules compare with
// Instant.Wall; leases, retries and the age of messages with Instant.Run.
//
// Timeouts are processed in phases: all promises that are due are settled, then their tasks
// are fulfilled, then awaiters are resumed and listeners notified, then leases and retries,
// then delays, then schedules.
//
// A KV reports no errors, so functions that read the store panic with a CorruptError, and
// Step recovers it. A KV that has failed may find nothing, which looks like damage: after a
// Fault a driver asks the KV for its own error first.
package core
