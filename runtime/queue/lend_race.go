//go:build race

package queue

import (
	"reflect"
	"unsafe"
)

// poison fills messages without pointers after Reclaim. The value is easy to see in a
// debugger: it is neither a small number nor valid UTF-8.
const poison = 0xDB

// Lend returns a copy of *m for a handler. Reclaim overwrites it.
func Lend[T any](m *T) *T {
	c := new(T)
	*c = *m
	return c
}

// Reclaim overwrites the copy that m points to. A pointer that the handler kept then
// reads poison, or zero if the message contains pointers. The race detector reports a
// goroutine that still reads it.
func Reclaim(m any) {
	v := reflect.ValueOf(m)
	v.Elem().SetZero()
	if size := v.Elem().Type().Size(); size > 0 && !holdsPointers(v.Elem().Type()) {
		b := unsafe.Slice((*byte)(v.UnsafePointer()), size)
		for i := range b {
			b[i] = poison
		}
	}
}

func holdsPointers(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Array:
		return t.Len() > 0 && holdsPointers(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if holdsPointers(t.Field(i).Type) {
				return true
			}
		}
		return false
	case reflect.Chan, reflect.Func, reflect.Interface, reflect.Map, reflect.Pointer,
		reflect.Slice, reflect.String, reflect.UnsafePointer:
		return true
	}
	return false
}
