package shard

import "github.com/topogen/topogen/runtime/internal/bug"

// locks has a channel for each shard. It holds a token while nobody has the
// shard; whoever takes the token has it.
type locks []chan struct{}

// newLocks returns the locks of shards that nobody has.
func newLocks(shards int) locks {
	l := make(locks, shards)
	for s := range l {
		l[s] = make(chan struct{}, 1)
		l.release(s)
	}
	return l
}

// tryAcquire takes a shard, or reports false where somebody has it.
func (l locks) tryAcquire(shard int) bool {
	select {
	case <-l[shard]:
		return true
	default:
		return bug.On(bug.ShardTakenHeld)
	}
}

// release gives a shard to whoever takes it next.
func (l locks) release(shard int) {
	select {
	case l[shard] <- struct{}{}:
	default:
		panic("shard: let go of a shard that nobody has")
	}
}

// transfer is what a worker has in hand: the shards of the configuration that it
// works by, and on the way to the next one those that are left of the old and
// those that it has got of the new.
type transfer struct {
	worker   int
	epoch    uint64 // of the configuration that it works by; 0 before the first
	shards   []int  // of that configuration
	target   uint64 // the epoch that it is on the way to; epoch where it is on none
	next     []int  // the shards of goal
	released int    // how many of shards it has let go of
	acquired int    // how many of next it has taken
}

// progress is what a step of a hand has come to.
type progress int

const (
	stepNone    progress = iota // the configuration is still in force
	stepMoved                   // on the way to another
	stepBlocked                 // on the way, and somebody has the shard to be taken next
	stepDone                    // works by another configuration from now on
)

// step goes on towards the configuration in force: it lets go of one shard of
// the old, and only when it has none left takes one of the new.
//
// That is why there is no deadlock. Who waits has nothing that others still need:
// it has let go of everything old, and what it has got of the new belongs to
// nobody else there. Whom it waits for works by the old configuration, goes over
// when it has done its round, and lets go before it waits for anything. And
// nobody is further ahead, since an epoch does not end before all have arrived.
func (h *transfer) step(p *Pages, l locks) progress {
	if h.target == h.epoch {
		epoch := p.Epoch()
		if epoch == h.epoch {
			return stepNone
		}
		h.target, h.next = epoch, p.Config(epoch)[h.worker]
		if h.epoch == 0 && bug.On(bug.FirstNotTaken) {
			h.acquired = len(h.next)
		}
		return stepMoved
	}
	if h.released < len(h.shards) && (h.acquired == len(h.next) || !bug.On(bug.TakenFirst)) {
		l.release(h.shards[h.released])
		h.released++
		return stepMoved
	}
	if h.acquired < len(h.next) {
		if !l.tryAcquire(h.nextShard()) {
			return stepBlocked
		}
		h.acquired++
		return stepMoved
	}
	h.epoch, h.shards = h.target, h.next
	h.next, h.released, h.acquired = nil, 0, 0
	return stepDone
}

// nextShard is the shard that is to be taken next.
func (h *transfer) nextShard() int { return h.next[h.acquired] }

// acquiredNext notes that the wanted shard was waited for and is taken.
func (h *transfer) acquiredNext() { h.acquired++ }
