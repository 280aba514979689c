package shard

// locks has a channel for each shard, which holds a token while no worker has the shard.
// A worker acquires the shard by receiving the token.
type locks []chan struct{}

// newLocks returns locks of which all are free.
func newLocks(shards int) locks {
	l := make(locks, shards)
	for s := range l {
		l[s] = make(chan struct{}, 1)
		l.release(s)
	}
	return l
}

// tryAcquire acquires a shard, or returns false if another worker has it.
func (l locks) tryAcquire(shard int) bool {
	select {
	case <-l[shard]:
		return true
	default:
		return false
	}
}

// release frees a shard, so that another worker can acquire it.
func (l locks) release(shard int) {
	select {
	case l[shard] <- struct{}{}:
	default:
		panic("shard: release of a shard that no worker has")
	}
}

// transfer holds the shards that a worker has, and moves the worker from one
// configuration to the next. Between configurations these are the old shards that are not
// released yet and the new shards that are already acquired.
type transfer struct {
	worker   int
	epoch    uint64 // of the configuration that the worker uses; 0 before the first
	shards   []int  // the shards of that configuration
	target   uint64 // the epoch that the worker switches to; equal to epoch if it does not switch
	next     []int  // the shards of target
	released int    // how many of shards are released
	acquired int    // how many of next are acquired
}

// progress is the result of a step.
type progress int

const (
	stepNone    progress = iota // the configuration is current
	stepMoved                   // a shard was released or acquired, or the target was set
	stepBlocked                 // another worker has the shard that must be acquired next
	stepDone                    // the worker uses the new configuration from now on
)

// step moves towards the current configuration: it releases one shard of the old
// configuration or, after all are released, acquires one shard of the new one.
//
// This order prevents deadlocks. A worker that waits has no shard that another worker
// waits for: it has released all old shards, and the new shards that it has acquired
// belong to it alone in the new configuration. It waits for a worker that still uses the
// old configuration, which switches after its round and releases its shards before it
// waits. No worker is ahead by more than one configuration, because an epoch does not end
// before all workers have switched to it.
func (t *transfer) step(p *Pages, l locks) progress {
	if t.target == t.epoch {
		epoch := p.Epoch()
		if epoch == t.epoch {
			return stepNone
		}
		t.target, t.next = epoch, p.Config(epoch)[t.worker]
		return stepMoved
	}
	if t.released < len(t.shards) {
		l.release(t.shards[t.released])
		t.released++
		return stepMoved
	}
	if t.acquired < len(t.next) {
		if !l.tryAcquire(t.nextShard()) {
			return stepBlocked
		}
		t.acquired++
		return stepMoved
	}
	t.epoch, t.shards = t.target, t.next
	t.next, t.released, t.acquired = nil, 0, 0
	return stepDone
}

// nextShard is the shard that must be acquired next.
func (t *transfer) nextShard() int { return t.next[t.acquired] }

// acquiredNext records that nextShard was acquired after waiting for it.
func (t *transfer) acquiredNext() { t.acquired++ }
