// Package peers does the work of the topologies with what a Go programmer would
// use instead: goroutines with buffered channels, protoactor-go, and watermill's
// gochannel. Each function moves n messages and returns when all were handled.
//
// Handlers are plain functions that are not inlined, as in the topologies;
// queues hold what those of topologies hold by default.
package peers

// capacity of the channels, the default of an edge.
const capacity = 1024

// Message is what travels.
type Message struct{ N uint64 }

// sources of a fan-in.
const sources = 8
