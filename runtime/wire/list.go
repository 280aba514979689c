package wire

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// Grow appends a zero element and returns it. It makes room for all elements that
// follow. The element's value must already be read from r.
func Grow[S ~[]E, E any](r *Reader, s *S) *E {
	if len(*s) == cap(*s) {
		*s = slices.Grow(*s, 1+r.run())
	}
	var zero E
	*s = append(*s, zero)
	return &(*s)[len(*s)-1]
}

// More appends a zero element and returns it, for a list that is not packed although it
// could be.
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

// At returns the next element of an array and counts it in i. If there is no next
// element, reading fails.
func At[E any](r *Reader, a []E, i *int) *E {
	if *i == len(a) {
		r.Within(ErrLength)
		return new(E)
	}
	*i++
	return &a[*i-1]
}

// New returns the value that a pointer points to, and allocates it if the pointer is
// nil.
func New[P ~*T, T any](p *P) *T {
	if *p == nil {
		*p = new(T)
	}
	return *p
}

// Pair returns the zero key and value of a map.
func Pair[M ~map[K]V, K comparable, V any](M) (k K, v V) { return k, v }

// Put adds a pair to a map. It makes a nil map, with room for the pairs that follow.
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
func (r *Reader) Left() bool { return r.at < len(r.b) }

// varints counts the numbers of a packed list by their last bytes.
func varints(b []byte) int {
	count := len(b)
	for ; len(b) >= 8; b = b[8:] {
		count -= bits.OnesCount64(binary.LittleEndian.Uint64(b) & 0x8080808080808080)
	}
	for _, c := range b {
		count -= int(c >> 7)
	}
	return count
}

// extend appends n elements and returns them. The caller must set them.
func extend[S ~[]E, E any](s *S, n int) S {
	at := len(*s)
	if at == 0 && n > 0 {
		*s = make(S, n) // slices.Grow would clear this memory again
	} else {
		*s = slices.Grow(*s, n)[:at+n]
	}
	return (*s)[at:]
}

// Bools reads a packed list.
func Bools[S ~[]E, E ~bool](r *Reader, s *S) {
	b := r.Message()
	list, at := extend(s, varints(b)), 0
	for i := 0; i < len(b); {
		var x uint64
		if x, i = varintAt(b, i); i < 0 {
			r.Within(reason(i))
			return
		}
		list[at] = x != 0
		at++
	}
}

// Ints reads a packed list.
func Ints[S ~[]E, E Signed](r *Reader, s *S) {
	b := r.Message()
	list, at := extend(s, varints(b)), 0
	for i := 0; i < len(b); {
		x := uint64(b[i])
		if i++; x >= 0x80 {
			if i < len(b) && b[i] < 0x80 { // a fast path for two bytes
				x = x&0x7f | uint64(b[i])<<7
				i++
			} else if x, i = varintAt(b, i-1); i < 0 {
				r.Within(reason(i))
				return
			}
		}
		v := protowire.DecodeZigZag(x)
		if int64(E(v)) != v {
			r.Within(ErrRange)
			return
		}
		list[at] = E(v)
		at++
	}
}

// Uints reads a packed list.
func Uints[S ~[]E, E Unsigned](r *Reader, s *S) {
	b := r.Message()
	list, at := extend(s, varints(b)), 0
	for i := 0; i < len(b); {
		x := uint64(b[i])
		if i++; x >= 0x80 {
			if i < len(b) && b[i] < 0x80 { // a fast path for two bytes
				x = x&0x7f | uint64(b[i])<<7
				i++
			} else if x, i = varintAt(b, i-1); i < 0 {
				r.Within(reason(i))
				return
			}
		}
		if uint64(E(x)) != x {
			r.Within(ErrRange)
			return
		}
		list[at] = E(x)
		at++
	}
}

// varintAt reads the number at i and returns its end, or an error code below 0.
func varintAt(b []byte, i int) (x uint64, end int) {
	x, n := protowire.ConsumeVarint(b[i:])
	if n < 0 {
		return 0, n
	}
	return x, i + n
}

// Float32s reads a packed list.
func Float32s[S ~[]E, E ~float32](r *Reader, s *S) {
	b := r.Message()
	list := extend(s, len(b)/4)
	for len(list) >= 4 && len(b) >= 16 { // four at once, because the loop itself would take most of the time
		x, y := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
		list[0], list[1] = E(math.Float32frombits(uint32(x))), E(math.Float32frombits(uint32(x>>32)))
		list[2], list[3] = E(math.Float32frombits(uint32(y))), E(math.Float32frombits(uint32(y>>32)))
		list, b = list[4:], b[16:]
	}
	for i := range list {
		list[i], b = E(math.Float32frombits(binary.LittleEndian.Uint32(b))), b[4:]
	}
	if len(b) > 0 {
		r.Within(ErrTruncated)
	}
}

// Float64s reads a packed list.
func Float64s[S ~[]E, E ~float64](r *Reader, s *S) {
	b := r.Message()
	list := extend(s, len(b)/8)
	for i := 0; i < len(list) && len(b) >= 8; i++ { // this form needs no bounds checks in the loop
		list[i], b = E(math.Float64frombits(binary.LittleEndian.Uint64(b))), b[8:]
	}
	if len(b) > 0 {
		r.Within(ErrTruncated)
	}
}
