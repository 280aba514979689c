// Package queue holds the queues that edges are made of.
//
// [Edge] is the queue between two instances: one producer, one consumer, growing
// segments, and messages that become visible a batch at a time. [Latest] keeps
// the newest messages and drops the oldest. [Ring] is a bounded queue for many
// producers and consumers, [LockFree] an unbounded one, of which nobody who is
// held up holds up others. docs/explanation/queues.md says which to take when.
//
// Publishing is apart from putting because it is what costs: each atomic store
// is an exchange on amd64, and a line that moves between cores costs as much as
// a channel operation. A batch pays for it once (docs/explanation/speed.md).
package queue
