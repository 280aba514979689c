package bug

// Bugs in package shard. Its tests detect them.
const (
	PromiseCountedTwice Bug = "promise-counted-twice" // a second promise of a worker is counted
	ShardTakenHeld      Bug = "shard-taken-held"      // a shard is acquired before it is released
	TakenFirst          Bug = "taken-first"           // a worker acquires its new shards before it releases the old ones
	FirstNotTaken       Bug = "first-not-taken"       // the shards of the first configuration are not acquired
	SleptThrough        Bug = "slept-through"         // a worker without shards is not notified of a new configuration
)

// InShard lists the deliberate bugs of package shard.
var InShard = []Bug{PromiseCountedTwice, ShardTakenHeld, TakenFirst, FirstNotTaken, SleptThrough}
