package wire

import "slices"

// Grow appends a zero element and returns it, with room for as many as follow.
// The element's value was taken out of r before.
func Grow[S ~[]E, E any](r *Reader, s *S) *E {
	if len(*s) == cap(*s) {
		*s = slices.Grow(*s, 1+r.run())
	}
	var zero E
	*s = append(*s, zero)
	return &(*s)[len(*s)-1]
}

// More appends a zero element and returns it: that of a list which is not packed
// though it could be.
func More[S ~[]E, E any](s *S) *E {
	var zero E
	*s = append(*s, zero)
	return &(*s)[len(*s)-1]
}

// Strings reads one string of a list.
func Strings[S ~[]E, E ~string](r *Reader, s *S) {
	v := E(r.Message())
	*Grow(r, s) = v
}

// At is the element of an array that comes next; i counts. Where the array has no
// more, reading fails.
func At[E any](r *Reader, a []E, i *int) *E {
	if *i == len(a) {
		r.Within(ErrLength)
		return new(E)
	}
	*i++
	return &a[*i-1]
}

// New is what a pointer leads to, made where it is nil.
func New[P ~*T, T any](p *P) *T {
	if *p == nil {
		*p = new(T)
	}
	return *p
}

// Pair returns the zero key and value of a map.
func Pair[M ~map[K]V, K comparable, V any](M) (k K, v V) { return k, v }

// Put puts a pair into a map, which is made where it is nil, with room for the
// pairs that follow.
func Put[M ~map[K]V, K comparable, V any](r *Reader, m *M, k K, v V) {
	if r.err != nil {
		return
	}
	if *m == nil {
		*m = make(M, 1+r.run())
	}
	(*m)[k] = v
}

// Left reports whether a packed list has more elements.
func (r *Reader) Left() bool { return len(r.rest) > 0 }

// varints counts the numbers of a packed list, each of which has one last byte.
func varints(b []byte) int {
	count := 0
	for _, c := range b {
		count += int(^c >> 7)
	}
	return count
}

// Bools reads a packed list.
func Bools[S ~[]E, E ~bool](r *Reader, s *S) {
	p := Read(r.Message())
	list := slices.Grow(*s, varints(p.rest))
	for p.Left() {
		var v E
		Bool(&p, &v)
		list = append(list, v)
	}
	*s = list
	r.Within(p.End("", ""))
}

// Ints reads a packed list.
func Ints[S ~[]E, E Signed](r *Reader, s *S) {
	p := Read(r.Message())
	list := slices.Grow(*s, varints(p.rest))
	for p.Left() {
		var v E
		Int(&p, &v)
		list = append(list, v)
	}
	*s = list
	r.Within(p.End("", ""))
}

// Uints reads a packed list.
func Uints[S ~[]E, E Unsigned](r *Reader, s *S) {
	p := Read(r.Message())
	list := slices.Grow(*s, varints(p.rest))
	for p.Left() {
		var v E
		Uint(&p, &v)
		list = append(list, v)
	}
	*s = list
	r.Within(p.End("", ""))
}

// Float32s reads a packed list.
func Float32s[S ~[]E, E ~float32](r *Reader, s *S) {
	p := Read(r.Message())
	list := slices.Grow(*s, len(p.rest)/4)
	for p.Left() {
		var v E
		Float32(&p, &v)
		list = append(list, v)
	}
	*s = list
	r.Within(p.End("", ""))
}

// Float64s reads a packed list.
func Float64s[S ~[]E, E ~float64](r *Reader, s *S) {
	p := Read(r.Message())
	list := slices.Grow(*s, len(p.rest)/8)
	for p.Left() {
		var v E
		Float64(&p, &v)
		list = append(list, v)
	}
	*s = list
	r.Within(p.End("", ""))
}
