//go:build !race

package queue

// Lend returns the pointer through which a handler uses *m until Reclaim. With -race it
// is a copy that Reclaim overwrites, so that the use of a pointer that the handler kept
// is detected. Without -race, Lend and Reclaim cost nothing.
func Lend[T any](m *T) *T { return m }

// Reclaim ends the use of m, the pointer that Lend returned. Its parameter is an any so
// that it is not compiled for each type of message. It costs nothing because it is
// inlined.
func Reclaim(any) {}
