//go:build race

package queue

import (
	"reflect"
	"unsafe"
)

// poison fills messages without pointers that were handed back: a value that
// stands out in a debugger, is no small number and no valid UTF-8.
const poison = 0xDB

// Lend returns a copy of *m for a handler; Reclaim poisons it.
func Lend[T any](m *T) *T {
	c := new(T)
	*c = *m
	return c
}

// Reclaim overwrites the lent copy, to which m points: a pointer that the handler
// kept reads poison, or zero where the message holds pointers, and a goroutine that
// still reads it is reported by the race detector.
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
