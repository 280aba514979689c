// Package hostile has code that an analysis may hang on or fall over.
package hostile

import (
	"iter"
	"unsafe"
)

type M struct {
	N    int
	Next *M
	Any  any
}

type Recursive struct{ last *M }

func (r *Recursive) ReceiveM(m *M, out *ASender) { r.ReceiveM(m, out); r.again(m, 10) }

func (r *Recursive) again(m *M, n int) *M {
	if n == 0 {
		return m
	}
	return r.again(r.again(m, n-1), n-1)
}

type Mutual struct{ last *M }

func (r *Mutual) ReceiveM(m *M, out *ASender) { r.a(m) } // want `message pointer m is stored in field last of Mutual by b`

func (r *Mutual) a(m *M) { r.b(m) }

func (r *Mutual) b(m *M) {
	if m.N > 0 {
		r.a(m)
	}
	r.last = m
}

type Generic[T any] struct{ list []T }

func (g *Generic[T]) ReceiveM(m *M, out *ASender) {
	grow[T](m, 3)
	both(m, g, func(a *M, b *Generic[T]) {})
	for _, x := range pairs[*M, T](m) {
		_ = x
	}
}

func grow[T any](m *M, n int) {
	if n > 0 {
		grow[T](m, n-1)
	}
}

func both[A, B any](a A, b B, f func(A, B)) { f(a, b) }

func pairs[A, B any](a A) map[any]A { return map[any]A{a: a} }

type Cyclic struct{ self any }

func (c *Cyclic) ReceiveM(m *M, out *ASender) {
	m.Next = m
	m.Any = m
	var a any
	b := []any{&a, m}
	a = &b
	f := func() {}
	f = func() { f(); _ = m }
	ch := make(chan any, 1)
	ch <- ch
	c.self = c
	for m = m.Next; m != nil; m = m.Next {
		a = m
	}
}

type Odd struct {
	_    int
	last uintptr
}

func (o *Odd) ReceiveM(m *M, _ *ASender) {
	o.last = uintptr(unsafe.Pointer(m))
	defer func() { _ = recover() }()
	switch x := any(m).(type) {
	case *M:
		goto end
	case nil:
		_ = x
	}
	select {
	default:
	}
end:
	panic(m)
}

type Iterates struct{ sum int }

func (i *Iterates) ReceiveM(m *M, out *ASender) {
	for x := range all(m) {
		defer func() { i.sum += x.N }()
		if x.N > 3 {
			return
		}
		i.sum += m.N
	}
	next, stop := iter.Pull(all(m))
	defer stop()
	next()
}

func all(m *M) iter.Seq[*M] {
	return func(yield func(*M) bool) {
		for ; m != nil && yield(m); m = m.Next {
		}
	}
}

type Nested struct{ f func() func() func() *M }

func (n *Nested) ReceiveM(m *M, out *ASender) {
	n.f = func() func() func() *M { // want `message pointer m is stored in field f`
		return func() func() *M { return func() *M { return m } }
	}
}

func init() {}

func init() {}

var _ = func() int { return 1 }()
