// Package piper runs the instances of a topology on a few workers.
//
// Generated code and other packages of the runtime call it. Generated code describes processors and edges in a Spec,
// has a Unit in every instance, a Link for every pair that exchanges messages and an Out in every
// sender, and calls handlers directly. A Unit is the pool's part of an instance. Package pool has the names that users need:
// options, errors, figures and the Stepper.
//
// # How a message travels
//
// A send puts a message into the queue between two instances, where only the sender
// sees it. When the sender's turn ends, after it has handled at most batch messages, its links
// are published: the count of the queue becomes visible, and the link is put on the ready
// list of the receiving instance. If the same worker runs both instances, this is a
// plain list operation; otherwise a note is posted to the inbox of the other worker. No
// queue is polled, so an idle instance needs no CPU, except for a source whose Ping has returned
// Idle: it is called again after 1 to 100 ms. Serve and senders from outside publish each message.
// An instance with a goroutine of its own publishes after each call. If a call of another
// instance takes more than 10 to 15 ms, the monitor publishes what it has sent so far.
//
// If all workers are busy, or as many as there are CPUs, a worker calls runtime.Gosched after
// 100 µs of turns, or after 20 µs if it has handled messages from outside.
//
// # Ownership
//
// Everything in a Worker, and in the units that it runs, belongs to the goroutine that
// runs the worker. Other goroutines post notes to its inbox, a lock-free stack. These are the
// exceptions:
//
//   - A caller of Ask may borrow a parked worker.
//   - The monitor publishes what a long call has sent.
//   - If the goroutine of a worker is stuck in a handler, another goroutine takes over the worker by
//     compare-and-swap. The stuck goroutine keeps the one unit that it runs, on a new worker outside the
//     pool.
//   - The health check gives an instance whose call it has abandoned another goroutine.
//
// Otherwise a unit moves by hand-over: its owner sets the new worker and posts a note there.
//
// # Guarantees
//
// Order: messages from one instance to another arrive in the order in which they were
// sent. Only one goroutine runs an instance at any time. For each edge, accepted =
// handled + dropped + queued, however handlers fail and however Run ends. With the
// policy block, a full queue pauses its sender, or within a cycle the inputs of the cycle, so
// queues cannot cause a deadlock. A queue within a cycle has a limit. A component finishes after all components that send to it.
//
// A message that is sent after the handler call has returned is counted (Late) and logged
// once. Under a Stepper, in tests and with -race it ends Run with
// ErrLateSend.
//
// # Replies from other goroutines
//
// An instance may have goroutines of its own, which wait for disks or other nodes. Such
// a goroutine calls Unit.Wake; then Woken is called in a turn, where the instance may
// send. Between Unit.BeginReply and Unit.EndReply the topology does not finish: a pending reply
// counts like a queued message. A handler that keeps work for later calls topo.Hold,
// which counts like an open input, so timers continue until the release.
//
// # Failures
//
// An error or a panic ends Run, unless the processor has a Watch. A failure of Finish always
// ends Run. With a Watch, the current message is handled again, becomes a dead letter, or is
// counted as dropped. With ThenStop the instance also ends: the pool reports it to the Supervisor,
// which decides what happens next. A new value of the processor's type replaces the old one. The
// Unit, the queues and the links stay. Until the new value exists, messages stay queued; if the
// instance is not restarted, they are counted as dropped. The same holds while the topology
// drains, until the drain timeout, with two exceptions: processors without inputs are not restarted,
// unless their component has Finish, and ticks for an instance that is down are dropped.
//
// A call that exceeds the timeout of its Watch is abandoned, or its process is killed. The messages that it
// has sent are published. Its goroutine keeps the sender, the message and a worker outside the pool,
// and its context ends. The next value gets a new sender with the same links. The abandoned
// goroutine ends when the call sends or returns, before it touches anything else.
//
// Constructors and Close run outside of the workers, so they do not delay other
// instances. Close has a time limit. After an error or the drain timeout, Run waits one second
// for handlers that still run. Init has a limit if
// the processor has a startup timeout, and the first Init also when the context of Run has
// ended. A call that exceeds its limit is abandoned.
package piper
