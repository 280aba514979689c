// Package queue holds the queues of edges, and queues for general use.
//
// [Edge] is the queue between two instances: one producer, one consumer, growing
// segments, and messages that become visible in batches. [Latest] keeps the newest
// messages and drops the oldest. [Ring] is a bounded queue for many producers and
// consumers. [LockFree] is an unbounded queue for many producers and consumers; a
// stopped goroutine never blocks the others. docs/explanation/queues.md says which
// queue to choose.
//
// Publishing is separate from putting because publishing is the expensive part: each
// atomic store is an exchange on amd64, and a cache line that moves between cores costs
// as much as a channel operation. A batch pays for it once (docs/explanation/speed.md).
package queue
