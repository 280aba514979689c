package shard

import (
	"context"
	"errors"
)

// Controller is a job that consists of shards, and divides them among workers. The
// workers of a [Sharder] call its methods concurrently. The comment of each method says
// which data it may access; no locks are needed for that data.
//
// If mayUpdate is false, a worker may be computing the next configuration. The data that
// Resharding reads, such as costs and counts, must not be changed then. The work itself
// continues.
type Controller interface {
	// ProcessShard does some work for a shard. It is called again and again, and only
	// this call may access the data of the shard. The configuration cannot change until
	// the calls of all workers have returned, so a call should be short. If there is no
	// work, wait in PreProcess. Return [Done] when the shard needs no more calls. The
	// context ends when Run should return.
	ProcessShard(ctx context.Context, shard int, mayUpdate bool) error
	// PreProcess begins a round of a worker, before ProcessShard is called for each of
	// its shards that is not done. It may access data of that worker, but no data of
	// shards. It is not called for a worker without such shards, which sleeps.
	PreProcess(ctx context.Context, worker int, mayUpdate bool) error
	// OnSwitch is called after a worker has acquired the shards of a new configuration,
	// also of the first one, and before it processes them. It may access the data of
	// these shards. Resharding does not run at that time. OnSwitch must not modify the
	// slice shards, but may keep it.
	OnSwitch(worker int, shards []int)
	// InitialSharding returns the shards of each worker in the first configuration: every
	// number from 0 up, each once. A worker may have no shards. See RoundRobin.
	InitialSharding(workers int) ([][]int, error)
	// Resharding returns the next configuration in the same form. old is a copy of the
	// current one with an entry for each worker; Resharding may modify and return it.
	// Resharding may read the data that ProcessShard and PreProcess update only if
	// mayUpdate is true, and the data that OnSwitch writes: no such update runs at that
	// time.
	Resharding(old [][]int) ([][]int, error)
	// MaxWorkers is the largest number of workers that the job can use.
	MaxWorkers() int
}

// Done is returned by ProcessShard when a shard needs no more calls. The job is done when
// all shards are done.
//
//lint:ignore ST1012 it is not a failure, like io.EOF
var Done = errors.New("shard: done")
