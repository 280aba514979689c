package shard

import (
	"fmt"
	"sync/atomic"

	"github.com/topogen/topogen/runtime/internal/bug"
)

const (
	countBits  = 16
	countMask  = 1<<countBits - 1
	workersMax = countMask - 1 // one count more says that somebody decides
)

// Pages holds two configurations, the one in force and the one before it, and
// changes them by shadow paging: the next configuration is written over the one
// before, and comes into force by one store. [NewPages] makes one.
//
// Epochs number the configurations, from 1. Each worker looks at Epoch between
// two pieces of work, and when it has changed goes over to the new configuration.
// Within an epoch it may update what the decision about the next one reads, until
// it promises to stop. When all workers have promised, one of them decides. So
// nobody updates what a decision reads, and a decision is made only when all
// workers have arrived in the epoch before: two configurations are enough.
type Pages struct {
	// word is the epoch and, in its lowest countBits bits, how many workers have
	// promised in it; one more than there are workers while somebody decides. An
	// epoch has 48 bits: at one a millisecond they last 8,900 years.
	word     atomic.Uint64
	_        [56]byte
	pages    [2]atomic.Pointer[page] // by the lowest bit of the epoch
	promised []promised              // by worker
	shards   int
}

type page struct {
	epoch  uint64
	config [][]int
}

// promised is the last epoch in which a worker has promised; the worker's own.
type promised struct {
	epoch uint64
	_     [56]byte
}

// NewPages returns pages for a number of workers, with the configuration of
// epoch 1: the shards of each worker. Together they must have every number from
// 0 up, each once. A worker may have none, and those at the end be left out.
func NewPages(workers int, first [][]int) (*Pages, error) {
	if workers < 1 || workers > workersMax {
		return nil, fmt.Errorf("shard: there must be between 1 and %d workers, not %d", workersMax, workers)
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

// Epoch is the number of the configuration in force: one atomic load.
func (p *Pages) Epoch() uint64 { return p.word.Load() >> countBits }

// Config returns the configuration of an epoch, the one in force or the one
// before it, and nil for others. It has an entry for each worker. Nobody may
// change it; it may be kept.
func (p *Pages) Config(epoch uint64) [][]int {
	if page := p.pages[epoch&1].Load(); page != nil && page.epoch == epoch {
		return page.config
	}
	return nil
}

// MayUpdate reports whether a worker may update what a decision reads: whether
// it has not promised in the epoch that it works in. Only the worker may ask.
func (p *Pages) MayUpdate(worker int, epoch uint64) bool {
	return p.promised[worker].epoch != epoch
}

// Promise says that a worker, which has gone over to the given epoch, will not
// update what a decision reads until the epoch changes. It reports whether it is
// time for Reshard: all workers have promised, and nobody decides yet. Only the
// worker may call it; it may do so again, and is counted once.
func (p *Pages) Promise(worker int, epoch uint64) (all bool) {
	for {
		word := p.word.Load()
		if word>>countBits != epoch {
			return false
		}
		if !p.MayUpdate(worker, epoch) && !bug.On(bug.PromiseCountedTwice) {
			return word&countMask == uint64(p.Workers())
		}
		if p.word.CompareAndSwap(word, word+1) {
			p.promised[worker].epoch = epoch
			return (word+1)&countMask == uint64(p.Workers())
		}
	}
}

// Reshard decides about the next configuration and puts it into force. It calls
// decide, and returns true, only when all workers have promised and nobody else
// is deciding. Decide gets a copy of the configuration in force, which it may
// change and return; an entry for each worker, each shard once, as for NewPages.
// Where decide fails or panics, or where what it returns is no configuration
// ([ErrConfiguration]), nothing has changed and the promises hold on.
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

// claim makes the caller the one who decides, if it is time to.
func (p *Pages) claim() (epoch uint64, ok bool) {
	word := p.word.Load()
	ok = word&countMask == uint64(p.Workers()) && p.word.CompareAndSwap(word, word+1)
	return word >> countBits, ok
}

// unclaim ends a claim without a new configuration.
func (p *Pages) unclaim(epoch uint64) { p.word.Store(epoch<<countBits | uint64(p.Workers())) }

// write puts a copy of config on the page of an epoch to come. All workers have
// gone over to the epoch before, so that nobody reads what is overwritten.
func (p *Pages) write(epoch uint64, config [][]int) error {
	if err := check(config, p.Workers(), p.shards); err != nil {
		return err
	}
	p.pages[epoch&1].Store(&page{epoch, clone(config, p.Workers(), p.shards)})
	return nil
}

// publish puts the page of an epoch into force and sets the promises back, both by
// one store: only who has the claim may change the word.
func (p *Pages) publish(epoch uint64) { p.word.Store(epoch << countBits) }
