//go:build !race

package queue

const yields = false

// maybeYield is called between the steps of queues for several producers and consumers.
// With -race it sometimes lets other goroutines run. Otherwise, on two processors,
// calls that take a few nanoseconds would rarely overlap. Without -race it costs
// nothing.
func maybeYield() {}
