//go:build !race && !topobug

package queue

const yields = false

// maybeYield stands between the steps of queues for many. With -race it lets other
// goroutines run there, now and then: on two processors calls of some
// nanoseconds would seldom meet within. Without, it costs nothing.
func maybeYield() {}
