package shard

import "fmt"

// check returns an error unless config gives each shard to exactly one worker.
func check(config [][]int, workers, shards int) error {
	if len(config) > workers {
		return fmt.Errorf("%w: it has entries for %d workers, but there are %d workers", ErrConfiguration, len(config), workers)
	}
	owner := make([]int, shards)
	for s := range owner {
		owner[s] = none
	}
	for w, own := range config {
		for _, s := range own {
			if s < 0 || s >= shards {
				return fmt.Errorf("%w: worker %d gets shard %d, but there are %d shards, numbered from 0", ErrConfiguration, w, s, shards)
			}
			if owner[s] != none {
				return fmt.Errorf("%w: shard %d is given to worker %d and to worker %d", ErrConfiguration, s, owner[s], w)
			}
			owner[s] = w
		}
	}
	for s, w := range owner {
		if w == none {
			return fmt.Errorf("%w: shard %d is given to no worker", ErrConfiguration, s)
		}
	}
	return nil
}

// clone copies config and adds empty entries for missing workers.
func clone(config [][]int, workers, shards int) [][]int {
	all := make([]int, 0, shards)
	copied := make([][]int, workers)
	for w, own := range config {
		from := len(all)
		all = append(all, own...)
		copied[w] = all[from:len(all):len(all)] // the capacity is limited, so that an append does not overwrite the next entry
	}
	return copied
}

// RoundRobin returns an initial configuration: shard i belongs to worker i mod workers.
// It panics if workers is less than 1 or shards is negative.
func RoundRobin(shards, workers int) [][]int {
	if workers < 1 || shards < 0 {
		panic(fmt.Sprintf("shard: %d shards cannot be given to %d workers", shards, workers))
	}
	config := make([][]int, workers)
	for s := range shards {
		config[s%workers] = append(config[s%workers], s)
	}
	return config
}
