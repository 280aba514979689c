// Package shard divides a job among workers, and changes the division while the job
// runs.
//
// A job consists of shards, numbered from 0. Each shard belongs to one worker at a
// time, so the data of a shard needs no lock. A configuration says which worker has
// which shards. From time to time the job, a [Controller], measures what its shards
// cost and computes a better configuration.
//
//	s := shard.Sharder[*Primes]{Controller: job}
//	err := s.Run(ctx) // until the job is done, the context ends, or a call fails
//
// # Guarantees
//
// Two workers never have the same shard. While the next configuration is computed, the
// data that the computation reads is not updated, and the workers keep working. A worker
// may have to wait for a shard until the shard's previous worker has finished its round;
// no other worker waits for it, and there is no deadlock. A configuration is only used if
// it contains each shard once. When Run returns, no call of the controller is running.
//
// # Limits
//
// A configuration is replaced after all workers have become ready for the next one. A
// call that does not return therefore delays this, and also delays the worker that gets
// the shard next. The numbers of workers and of shards are fixed for a run.
//
// # Design
//
// Configurations are changed by shadow paging. [Pages] holds two of them, of which one
// is in use, and counts the workers that have promised not to update the data that the
// decision reads. Pages has no clock and no goroutines, and can be used without a
// Sharder. A transfer moves one worker from one configuration to the next in atomic
// steps. The Sharder only calls these two, and waits when they require it. The tests can
// therefore visit all interleavings of the production code
// (docs/explanation/sharding.md).
package shard
