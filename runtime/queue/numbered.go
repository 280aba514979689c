package queue

// Numbered is a message with its number among all messages that one instance has sent
// to another, of any type. The numbers keep the order if several edges connect the two
// instances.
type Numbered[T any] struct {
	N uint64
	M T
}
