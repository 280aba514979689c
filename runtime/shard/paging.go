package shard

import (
	"fmt"
	"sync/atomic"
)

const (
	countBits  = 16
	countMask  = 1<<countBits - 1
	workersMax = countMask - 1 // a count of workers+1 means that a decision is being made
)

// Pages holds two configurations, the current one and the one before it, and changes them
// by shadow paging: the next configuration overwrites the older one, and becomes current
// by one atomic store. Use [NewPages].
//
// Epochs number the configurations from 1. Each worker reads Epoch between two pieces of
// work, and switches to the new configuration when the epoch has changed. Within an epoch
// a worker may update the data that the next decision reads, until it promises to stop.
// When all workers have promised, one of them decides. Therefore no worker updates the
// data that a decision reads, and a decision is only made after all workers have switched
// to the current configuration. This is why two configurations are enough.
type Pages struct {
	// word holds the epoch and, in its lowest countBits bits, the number of workers that
	// have promised in this epoch. The number is one more than the number of workers
	// while a decision is being made. An epoch has 48 bits: at one epoch per millisecond
	// they last 8,900 years.
	word     atomic.Uint64
	_        [56]byte
	pages    [2]atomic.Pointer[page] // indexed by the lowest bit of the epoch
	promised []promised              // by worker
	shards   int
}

type page struct {
	epoch  uint64
	config [][]int
}

// promised is the last epoch in which a worker has promised. Only that worker accesses
// it.
type promised struct {
	epoch uint64
	_     [56]byte
}

// NewPages returns pages for a number of workers. first is the configuration of epoch 1:
// the shards of each worker. Together they must contain every number from 0 up, each
// once. A worker may have no shards, and trailing workers without shards may be omitted.
func NewPages(workers int, first [][]int) (*Pages, error) {
	if workers < 1 || workers > workersMax {
		return nil, fmt.Errorf("shard: the number of workers must be between 1 and %d, got %d", workersMax, workers)
	}
	p := &Pages{promised: make([]promised, workers)}
	for _, own := range first {
		p.shards += len(own)
	}
	if err := p.write(1, first); err != nil {
		return nil, err
	}
	p.publish(1)
	return p, nil
}

// Workers is the number of workers.
func (p *Pages) Workers() int { return len(p.promised) }

// Shards is the number of shards, which never changes.
func (p *Pages) Shards() int { return p.shards }

// Epoch is the number of the current configuration. It takes one atomic load.
func (p *Pages) Epoch() uint64 { return p.word.Load() >> countBits }

// Config returns the configuration of an epoch, with an entry for each worker. It returns
// nil unless the epoch is the current one or the one before. Do not modify the result; it
// may be kept.
func (p *Pages) Config(epoch uint64) [][]int {
	if page := p.pages[epoch&1].Load(); page != nil && page.epoch == epoch {
		return page.config
	}
	return nil
}

// MayUpdate reports whether a worker may update the data that a decision reads, which is
// until it promises in its epoch. Only the worker itself may call it.
func (p *Pages) MayUpdate(worker int, epoch uint64) bool {
	return p.promised[worker].epoch != epoch
}

// Promise declares that a worker, which has switched to the given epoch, will not update
// the data that a decision reads until the epoch changes. It returns true if it is time
// to call Reshard: all workers have promised, and no decision is in progress. Only the
// worker itself may call it. Repeated promises count once.
func (p *Pages) Promise(worker int, epoch uint64) (all bool) {
	for {
		word := p.word.Load()
		if word>>countBits != epoch {
			return false
		}
		if !p.MayUpdate(worker, epoch) {
			return word&countMask == uint64(p.Workers())
		}
		if p.word.CompareAndSwap(word, word+1) {
			p.promised[worker].epoch = epoch
			return (word+1)&countMask == uint64(p.Workers())
		}
	}
}

// Reshard computes the next configuration and makes it current. It calls decide, and
// returns true, only if all workers have promised and no other decision is in progress.
// decide gets a copy of the current configuration, which it may modify and return. Its
// result must have the form that NewPages requires. If decide fails or panics, or its
// result is invalid ([ErrConfiguration]), nothing changes and the promises stay valid.
func (p *Pages) Reshard(decide func(old [][]int) ([][]int, error)) (switched bool, err error) {
	epoch, ok := p.claim()
	if !ok {
		return false, nil
	}
	defer func() {
		if !switched {
			p.unclaim(epoch)
		}
	}()
	config, err := decide(clone(p.Config(epoch), p.Workers(), p.shards))
	if err != nil {
		return false, err
	}
	if err := p.write(epoch+1, config); err != nil {
		return false, err
	}
	p.publish(epoch + 1)
	return true, nil
}

// claim reserves the decision for the caller, if all have promised and it is not
// reserved.
func (p *Pages) claim() (epoch uint64, ok bool) {
	word := p.word.Load()
	ok = word&countMask == uint64(p.Workers()) && p.word.CompareAndSwap(word, word+1)
	return word >> countBits, ok
}

// unclaim releases a claim without a new configuration.
func (p *Pages) unclaim(epoch uint64) { p.word.Store(epoch<<countBits | uint64(p.Workers())) }

// write stores a copy of config on the page of the next epoch. All workers have switched
// to the current epoch, so no worker reads the configuration that is overwritten.
func (p *Pages) write(epoch uint64, config [][]int) error {
	if err := check(config, p.Workers(), p.shards); err != nil {
		return err
	}
	p.pages[epoch&1].Store(&page{epoch, clone(config, p.Workers(), p.shards)})
	return nil
}

// publish makes the page of an epoch current and resets the promises with one store. Only
// the caller that holds the claim may change the word.
func (p *Pages) publish(epoch uint64) { p.word.Store(epoch << countBits) }
