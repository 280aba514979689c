package shard

import (
	"context"
	"errors"
)

// Controller is a job that consists of shards, and knows how to divide them. Its
// methods are called by the workers of a [Sharder], several at a time; what each
// may touch is said below, and no locks are needed for that.
//
// Where mayUpdate is false, some worker may be deciding about the next
// configuration, and what Resharding reads must not be changed: costs, counts.
// The work itself goes on.
type Controller interface {
	// ProcessShard does some work of a shard, and is called again and again. It
	// has the data of that shard for itself. Until all workers have come back
	// nothing is divided anew, so it should not take long; where there is nothing
	// to do, PreProcess is the place to wait. [Done] says that the shard needs no
	// more. The context ends when Run is to end.
	ProcessShard(ctx context.Context, shard int, mayUpdate bool) error
	// PreProcess begins a round of a worker, before ProcessShard of each of its
	// shards that is not done. It may touch what belongs to that worker, but no
	// data of shards. A worker that has no such shards sleeps.
	PreProcess(ctx context.Context, worker int, mayUpdate bool) error
	// OnSwitch tells that a worker has taken the shards of another configuration,
	// the first one too, and is about to begin with them. It has the data of these
	// shards for itself, and Resharding does not run. It must not change shards,
	// but may keep it.
	OnSwitch(worker int, shards []int)
	// InitialSharding returns the shards of each worker to begin with: every
	// number from 0 up, each once. A worker may have none. See RoundRobin.
	InitialSharding(workers int) ([][]int, error)
	// Resharding returns the next configuration, in the same form. Old is a copy
	// of the one in force with an entry for each worker, and may be changed and
	// returned. Resharding may read whatever ProcessShard and PreProcess update
	// only where they may, and what OnSwitch writes: none of them does so now.
	Resharding(old [][]int) ([][]int, error)
	// MaxWorkers is how many workers can be of use.
	MaxWorkers() int
}

// Done is what ProcessShard returns when a shard needs no more. When all shards
// are done, so is the job.
//
//lint:ignore ST1012 it is no failure, as io.EOF is none
var Done = errors.New("shard: done")
