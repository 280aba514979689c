// Package queue stands in for the runtime.
package queue

type Edge[T any] struct{ list []T }

func (e *Edge[T]) Put(m T) { e.list = append(e.list, m) }
