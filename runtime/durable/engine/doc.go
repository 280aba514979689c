// Package engine drives the core of durable promises: it commits operations to a store,
// fires timeouts, and delivers messages.
//
//	s, err := store.Open("promises", store.Options{})
//	e, err := engine.Open(engine.Config{Store: s})
//	result, err := e.Do(ctx, protocol.PromiseCreate{ID: "order-17", TimeoutAt: deadline})
//	c, err := e.Connect("orders", "process-1")
//	for message := range c.Messages() { ... }
//	err = e.Close(ctx)
//
// A server and workers in the same process use the same Engine.
//
// # Guarantees
//
// When Do returns a result below 400, its effects are on disk. Operations take effect one
// after the other; each sees the effects of all that were answered before it began. An
// operation that only reads does not write and does not wait for a commit, with one
// exception: the first answer that depends on a deadline that has passed waits until the
// time is on disk. So no later process begins before that deadline and shows the promise as
// pending again.
//
// If the context of Do ends while the operation waits in the queue, the operation is not
// carried out. After it was taken from the queue its outcome is unknown (ErrUnknown).
//
// Close answers all operations that were accepted.
//
// A full disk refuses operations with status 503. Nothing is lost, reads that need no commit
// continue, and operations are accepted again when there is space. After any other error of a write or a
// sync the engine stops: the callers of the commit get an error that matches ErrStopped,
// because its outcome is unknown, and further operations are refused with status 503. A
// damaged store has the same effect.
//
// A step that panics is rolled back and answered with status 500. Other operations of the
// same transaction are carried out.
//
// # Time
//
// Deadlines follow the time of day. It never goes back: if the clock of the computer is
// behind the time that the engine has used, the engine advances at half speed until the
// clock has caught up. [SetBack] sets the time of a store back that no engine uses.
//
// A jump forward over more than JumpMax, a minute, is not believed at once, because a clock
// can be wrong for a moment and a deadline that has passed cannot be opened again. The jump
// is measured against the monotonic clock, and at a start against the last commit. The time
// goes on without the jump until it has lasted for 10 s, or for a minute if it is over more
// than a month. A doubt continues in the next process. So after a time in which the store
// was closed or the computer was suspended, timers that are due fire up to 11 s late.
// Operations are carried out at once, with the time of the last commit; only a new schedule
// waits. The begin and the end of a doubt are logged. With Debug there is none, and with
// Config.Agreed there is none at the start.
//
// Leases and retries follow the time for which the store was open, measured by the
// monotonic clock. A clock that jumps therefore ends no lease, and a
// worker does not lose its lease because the server was down. Both times are stored with
// each commit. A process that is killed forgets the time since its last commit: a lease
// then lasts longer by as much.
//
// The engine knows when the next timeout is due, and looks at the clock at least every
// second to notice a jump. A transaction processes at most 1,000 timeouts, and operations
// that wait are part of the same transaction. So a large number of timeouts delays an
// operation by one transaction, not by all of them.
//
// # Delivery
//
// An execute message for poll://any@group/pid goes to the process if it is connected, else
// to the process of the group with the fewest waiting messages. If no connection has room,
// the message waits in memory: at most 10,000 for a group or process and 100,000 in all.
// Further messages are counted and dropped, and the retry of their task sends them again.
// When a task ends, is halted or is acquired, its message leaves the memory. So only tasks
// that are pending take a place.
//
// A retry whose message waits already, or would have no place, is left out: it writes
// nothing. When a worker connects or has taken a message, or the message of an ended task
// has made room, the retries that were left out are looked at again, spread over the retry
// timeout. So tasks without a worker cost nothing, however many there are, and a lost
// message is repeated after at most twice the retry timeout. With Debug no retry is left
// out.
//
// When an engine opens, it sends the messages of all pending tasks that were offered
// before, at most 100,000.
//
// An unblock message is in the store until a connection takes it. A connection that has no
// room does not lose it: the engine reads it from the store when there is room. Delivery to
// a connection is at least once. A process that is killed right after a delivery sends the
// message again after its start.
//
// A connection takes a message when its program receives it from the channel. A server
// calls [Connection.Confirm] first, and then the connection takes a message when the server
// has sent it. A message that could not be sent goes to another connection, or waits for
// one. A process has one connection: if it connects again, the earlier one is closed.
//
// Messages to http and https addresses are pushed with POST. At most 256 requests run at a
// time, of these at most 32 to one address and 64 to one host. Connecting may take 10 s, a
// request 180 s.
// Redirects are not followed, because they can lead to a host that the client of the address
// did not choose. A status of 200 to 299 is a delivery, all others are failures. After a
// failure the address gets one message at a time, first after a second, then after twice
// the delay up to a minute. An unblock message is sent again that way until it is delivered
// or core.Config.UnblockAge has passed. An execute message is dropped in the meantime, and
// the retry of its task sends it again.
//
// # Limits
//
// 16,384 operations or 256 MiB may wait for a commit; further ones are refused with status
// 429. 1000 connections, 100 messages or 8 MiB each, and 256 MiB together. All limits are constants in config.go, and
// [Config] has the limits that depend on the use.
//
// # Design
//
// One goroutine, the committer, writes. It takes all operations that wait, carries them out
// with the core in one transaction, commits it, answers the callers, and hands
// the messages to the hub. While a commit syncs, the next operations gather, so the number
// of operations for each sync grows with the number of callers, and a single caller does not
// wait for others.
//
// Read operations use a transaction of their own in the goroutine of the caller.
//
// The hub is passive: deliver never blocks the committer. Each connection has a goroutine
// that hands messages to the program.
package engine
