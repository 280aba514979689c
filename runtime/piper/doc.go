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
// sees it. When the sender's turn ends, after at most batch messages, its links are
// published: the count of the queue becomes visible, and the link is put on the ready
// list of the receiving instance. If the same worker runs both instances, this is a
// plain list operation; otherwise a note is posted to the inbox of the other worker. No
// queue is polled, so an idle instance needs no CPU. If a call takes more than 10 to
// 15 ms, the monitor publishes what the instance has sent so far. An instance with a
// goroutine of its own publishes after each call.
//
// If all workers are busy, or as many as there are CPUs, a worker calls runtime.Gosched after
// 100 µs of turns, or after 20 µs if it has handled messages from outside.
//
// # Ownership
//
// Everything in a Worker, and in the units that it runs, belongs to the goroutine that
// runs the worker. Other goroutines post notes to its inbox, a lock-free stack. There
// are two exceptions. A caller of Ask may borrow a parked worker. The monitor publishes what a
// long call has sent, and if the goroutine of a worker is stuck in a handler, another goroutine
// takes over the worker by compare-and-swap. A unit moves only by hand-over: its owner sets the
// new worker and posts a note there. The stuck goroutine keeps the one unit that it runs, on a
// new worker outside the pool.
//
// # Guarantees
//
// Order: messages from one instance to another arrive in the order in which they were
// sent. Only one goroutine runs an instance at any time. For each edge, accepted =
// handled + dropped + queued, however handlers fail and however Run ends. With the
// policy block, a full queue pauses its sender, or within a cycle the inputs of the cycle, so
// queues cannot cause a deadlock. A queue within a cycle has a limit. Processors finish in upstream order.
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
// An error or a panic ends Run, unless the processor has a Watch. With a Watch, the
// current message is handled again, becomes a dead letter, or is counted as dropped.
// The pool reports the end of the instance to the Supervisor, which decides what
// happens next. A new instance takes over the queues and links. Until it runs, messages
// stay queued; if the instance is not restarted, they are counted as dropped. The same
// holds while the topology drains, until the drain timeout, with two exceptions:
// processors without inputs are not restarted, and ticks for an instance that is down
// are dropped.
//
// A call that exceeds the timeout of its Watch is abandoned. The messages that it has sent are published. Its
// goroutine keeps the sender, the message and the worker, and its context ends. The
// next instance gets a new sender with the same links. The abandoned goroutine ends
// when the call returns, before it touches anything else.
//
// Constructors and Close run outside of the workers, so they do not delay other
// instances. Close has a time limit, and Run has one after the drain timeout. Init has one if
// the processor has a startup timeout, and the first Init also when the context of Run has
// ended. A call that exceeds its limit is abandoned.
package piper
