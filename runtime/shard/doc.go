// Package shard divides a job among workers, and divides it anew while it runs.
//
// A job consists of shards, numbered from 0. Each shard belongs to one worker at
// a time, so what belongs to a shard needs no lock. Which shards are whose is a
// configuration. Now and then the job, a [Controller], looks at what its shards
// have cost and makes a better one.
//
//	s := shard.Sharder[*Primes]{Controller: job}
//	err := s.Run(ctx) // until the job is done, the context ends, or an error
//
// # Guarantees
//
// A shard is never in two workers. Nothing that the decision about the next
// configuration reads is updated while it is made, and nobody has to wait for it:
// the work goes on. A worker that waits for a shard, until the one that has it
// has done its round, holds up nobody else. There is no deadlock. No configuration
// comes into force that does not have each shard once. Run returns when no call
// of the controller is left.
//
// # Limits
//
// A configuration is replaced when all workers have been ready for it. So a call
// that does not come back puts that off, and keeps the worker that is to get its
// shard waiting. The number of workers and of shards is fixed for a run.
//
// # Design
//
// This is the shadow-paging sharder of rast.md 2.12 (docs/reference/rast.md).
// [Pages] is the heart: two configurations, of which one is in force, and the
// count of the workers that have promised to update nothing that the decision
// reads. It has no clock and no goroutines, and may be used by itself. A hand is
// one worker's way from one configuration to the next, a step at a time. The
// Sharder only calls them, and waits where they say so. That is why the tests can
// go through all interleavings of the very code that runs
// (docs/explanation/sharding.md).
package shard
