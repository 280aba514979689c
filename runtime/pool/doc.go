// Package pool runs the instances of a topology on a few workers.
//
// Generated code is its caller: it describes processors and edges in a Spec,
// embeds a Unit in every instance, a Link in every pair of instances and an Out
// in every sender, and calls handlers directly. What people use by themselves
// are the options, the errors, the Stepper and the figures.
//
// # How a message travels
//
// A send puts a message into the queue between two instances; nobody else sees
// it yet. When the sender's turn ends (at most batch messages), its links are
// published: the queue's count becomes visible and the link is put on the
// ready list of the receiving instance, directly where the same worker runs
// both, through the other worker's inbox where not. Nothing is scanned: an idle
// instance costs a pass nothing.
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
// queued, for each edge. A full queue pauses its sender and never a cycle, so
// nothing deadlocks by its queues. A topology finishes upstream first.
//
// # Answers from elsewhere
//
// An instance may have goroutines of its own, which wait for disks and other
// machines. Such a one calls Unit.Wake, and Woken is called in a turn, where the
// instance sends what it has. Unit.Owe keeps the topology from finishing before
// Unit.Paid: what is owed counts like a message in a queue, and neither is a
// source.
//
// # Failures
//
// An error or a panic ends Run, unless the processor has a Watch. Then the
// message in hand is handled again, becomes a dead letter, or is counted as
// dropped, and what becomes of the instance is for the Supervisor to say, which
// the pool tells of each end. A new instance takes over queues and links; while
// there is none its messages wait, and when there will be none they are counted
// as dropped. A call that hangs is abandoned: its goroutine keeps the sender, the
// message and the worker that it has, the instance gets others, and the
// goroutine ends when it comes back. Constructors and Close run beside the
// workers, so that they hold up nobody.
package pool
