// Package piper runs the instances of a topology on a few workers.
//
// Generated code is its caller: it describes processors and edges in a Spec,
// has a Unit in every instance, a Link in every pair of instances and an Out
// in every sender, and calls handlers directly. Package pool has what people use by
// themselves: the options, the errors, the Stepper and the figures.
//
// # How a message travels
//
// A send puts a message into the queue between two instances; nobody else sees
// it yet. When the sender's turn ends (at most batch messages), its links are
// published: the queue's count becomes visible and the link is put on the
// ready list of the receiving instance, directly where the same worker runs
// both, through the other worker's inbox where not. Nothing is scanned: an idle
// instance costs a pass nothing. When a call takes more than 10 to 15 ms, the
// monitor makes visible what the instance has sent, and an instance with a
// goroutine of its own publishes after each call.
//
// A worker that always has something to do lets other goroutines run after 100 µs
// of turns.
//
// # Ownership
//
// Everything in a Worker and in the units at home there belongs to the one
// goroutine that runs the worker. Others reach it through its inbox alone, a
// lock-free stack of notes. A unit moves only by hand-over: its owner sets the
// new home and posts it there. A worker whose goroutine is stuck in a handler
// is taken from it by compare-and-swap; the goroutine keeps the one unit it is
// in, as a worker of its own.
//
// # Guarantees
//
// Order: what one instance sends to another arrives in that order. Only one
// goroutine is in an instance at any time. Accepted = handled + dropped +
// queued, for each edge, whatever fails and however Run ends. A full queue pauses
// its sender and never a cycle, so nothing deadlocks by its queues; each queue within
// a cycle has a limit instead. A topology finishes upstream first.
//
// A message that is sent after the call that its sender was for is counted (Late)
// and logged once. Under a Stepper, in tests and with -race it ends Run with
// ErrLateSend.
//
// # Answers from elsewhere
//
// An instance may have goroutines of its own, which wait for disks and other
// machines. Such a one calls Unit.Wake, and Woken is called in a turn, where the
// instance sends what it has. Unit.Owe keeps the topology from finishing before
// Unit.Paid: what is owed counts like a message in a queue, and neither is a
// source. A handler that keeps work for later calls topo.Hold, which counts like an
// input that is open: timers go on until the release, too.
//
// # Failures
//
// An error or a panic ends Run, unless the processor has a Watch. Then the
// message in hand is handled again, becomes a dead letter, or is counted as
// dropped, and what becomes of the instance is for the Supervisor to say, which
// the pool tells of each end. A new instance takes over queues and links; while
// there is none its messages wait, and when there will be none they are counted
// as dropped. That holds while the topology drains, too, until the drain timeout:
// only processors without inputs are not restarted then, and ticks for an instance
// that is down are dropped.
//
// A call that hangs is abandoned. Messages that it has sent are published. Its
// goroutine keeps the sender, the message and the worker that it has, and its
// context ends; the next instance gets a new sender with the same links. The
// goroutine ends when it comes back, before it touches anything else.
//
// Constructors and Close run beside the workers, so that they hold up no other
// instance. All calls of Init and Close are bounded, and so is Run after the drain
// timeout: a call that hangs is left behind.
package piper
