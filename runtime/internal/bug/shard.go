package bug

// Those of package shard, whose tests catch them.
const (
	PromiseCountedTwice Bug = "promise-counted-twice" // a worker that promises again is counted again
	ShardTakenHeld      Bug = "shard-taken-held"      // a shard is taken before it is let go
	TakenFirst          Bug = "taken-first"           // a worker takes its new shards before it lets go of the old
	FirstNotTaken       Bug = "first-not-taken"       // the shards of the first configuration are not taken
	SleptThrough        Bug = "slept-through"         // a worker without shards is not told of a new configuration
)

// InShard lists the deliberate bugs of package shard.
var InShard = []Bug{PromiseCountedTwice, ShardTakenHeld, TakenFirst, FirstNotTaken, SleptThrough}
