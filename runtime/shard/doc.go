// Package shard divides a job among workers, and divides it anew while it runs:
// the shadow-paging sharder of rast.md 2.12.
//
// A job consists of shards, numbered from 0. Each shard belongs to one worker at
// a time, so what belongs to a shard needs no lock. Which shards are whose is a
// configuration; now and then a user's function looks at what the shards have
// cost and makes a better one.
//
// [Pages] is the heart: two configurations, of which one is in force, and the
// count of the workers that have promised to update nothing that the decision
// reads. It has no clock and no goroutines, and may be used by itself.
package shard
