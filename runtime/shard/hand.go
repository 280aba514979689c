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
		l.letGo(s)
	}
	return l
}

// tryTake takes a shard, or reports false where somebody has it.
func (l locks) tryTake(shard int) bool {
	select {
	case <-l[shard]:
		return true
	default:
		return bug.On(bug.ShardTakenHeld)
	}
}

// letGo gives a shard to whoever takes it next.
func (l locks) letGo(shard int) {
	select {
	case l[shard] <- struct{}{}:
	default:
		panic("shard: let go of a shard that nobody has")
	}
}

// hand is what a worker has in hand: the shards of the configuration that it
// works by, and on the way to the next one those that are left of the old and
// those that it has got of the new.
type hand struct {
	worker int
	epoch  uint64 // of the configuration that it works by; 0 before the first
	shards []int  // of that configuration
	goal   uint64 // the epoch that it is on the way to; epoch where it is on none
	next   []int  // the shards of goal
	gone   int    // how many of shards it has let go of
	taken  int    // how many of next it has taken
}

// progress is what a step of a hand has come to.
type progress int

const (
	stays   progress = iota // the configuration is still in force
	moves                   // on the way to another
	waits                   // on the way, and somebody has the shard to be taken next
	arrives                 // works by another configuration from now on
)

// step goes on towards the configuration in force: it lets go of one shard of
// the old, and only when it has none left takes one of the new.
//
// That is why there is no deadlock. Who waits has nothing that others still need:
// it has let go of everything old, and what it has got of the new belongs to
// nobody else there. Whom it waits for works by the old configuration, goes over
// when it has done its round, and lets go before it waits for anything. And
// nobody is further ahead, since an epoch does not end before all have arrived.
func (h *hand) step(p *Pages, l locks) progress {
	if h.goal == h.epoch {
		epoch := p.Epoch()
		if epoch == h.epoch {
			return stays
		}
		h.goal, h.next = epoch, p.Config(epoch)[h.worker]
		if h.epoch == 0 && bug.On(bug.FirstNotTaken) {
			h.taken = len(h.next)
		}
		return moves
	}
	if h.gone < len(h.shards) && (h.taken == len(h.next) || !bug.On(bug.TakenFirst)) {
		l.letGo(h.shards[h.gone])
		h.gone++
		return moves
	}
	if h.taken < len(h.next) {
		if !l.tryTake(h.wanted()) {
			return waits
		}
		h.taken++
		return moves
	}
	h.epoch, h.shards = h.goal, h.next
	h.next, h.gone, h.taken = nil, 0, 0
	return arrives
}

// wanted is the shard that is to be taken next.
func (h *hand) wanted() int { return h.next[h.taken] }

// took notes that the wanted shard was waited for and is taken.
func (h *hand) took() { h.taken++ }
