package queue

// Numbered is a message with its place among all messages, of whatever type,
// that one instance sent to another: what keeps their order when several edges
// join a pair.
type Numbered[T any] struct {
	N uint64
	M T
}
