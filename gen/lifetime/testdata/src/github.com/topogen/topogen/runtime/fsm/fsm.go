// Package fsm stands in for the runtime.
package fsm

type Entry struct{ Index uint64 }

type Definition[S, U, R any] struct {
	Update   func(*U, *S) (R, error)
	UpdateAt func(*U, *S, Entry) (R, error)
	Revert   func(*U, *S) error
}
