// Package peers does the work of the topologies with what a Go programmer would use
// instead: goroutines with buffered channels, protoactor-go, and watermill's gochannel.
// Each function sends n messages and returns when all were handled.
//
// Handlers are plain functions that are not inlined, as in the topologies. Queues have
// the default capacity of edges.
package peers

// capacity is the capacity of the channels, the default of an edge.
const capacity = 1024

// Message is the message type.
type Message struct{ N uint64 }

// sources is the number of sources of a fan-in.
const sources = 8
