package wire

import (
	"math"
	"slices"
	"unsafe"
)

// Room is the memory that large elements of a message may still use. Large elements are
// elements of lists and maps, and values of pointers, whose Go type is large compared
// to the two bytes that one can be encoded in. Each is charged before it is allocated,
// against one Room for the whole message. Appending charges the same amounts, from 0
// down, so that every message that was written can be read.
type Room int64

const (
	roomMin     = 1 << 20 // so a small message may be arbitrarily sparse
	roomPerByte = 64      // as for an element of 128 bytes, which is not charged
)

// NoRoomLimit is the room of the state of a state machine. Each state must have snapshots, so
// its size cannot be limited. A node reads a state only from its own disk or from a member of
// its group.
const NoRoomLimit Room = math.MaxInt64

// RoomFor returns the room of a message with n bytes.
func RoomFor(n int) Room { return max(roomMin, roomPerByte*Room(n)) }

// take charges n elements and reports whether there was room.
func take[E any](room *Room, n int) bool {
	var zero E
	*room -= Room(n) * Room(unsafe.Sizeof(zero))
	return *room >= 0
}

// ChargeList charges the elements of a list when writing.
func ChargeList[S ~[]E, E any](room *Room, s S) { take[E](room, len(s)) }

// ChargeMap charges the pairs of a map when writing.
func ChargeMap[M ~map[K]V, K comparable, V any](room *Room, m M) {
	take[K](room, len(m))
	take[V](room, len(m))
}

// ChargePointer charges the value of a pointer. It reports whether there was room; only
// readers use the result.
func ChargePointer[P ~*T, T any](room *Room, _ P) bool { return take[T](room, 1) }

// Paid completes the writing of a message with n bytes. It returns err, or ErrSparse if
// a reader would not have the room that was charged.
func Paid(message string, room Room, n int, err error) error {
	if err == nil && RoomFor(n)+room < 0 {
		return Failed(message, "", ErrSparse)
	}
	return err
}

// GrowLarge is Grow for large elements. ahead counts elements that are already charged:
// elements that follow each other are all charged before memory is allocated for them.
func GrowLarge[S ~[]E, E any](r *Reader, room *Room, s *S, ahead *int) *E {
	if *ahead > 0 {
		*ahead--
		return More(s)
	}
	if len(*s) == cap(*s) {
		*ahead = r.run()
	}
	if !take[E](room, 1+*ahead) {
		r.Within(ErrSparse)
		return new(E)
	}
	*s = slices.Grow(*s, 1+*ahead)
	return More(s)
}

// MoreLarge is More for large elements.
func MoreLarge[S ~[]E, E any](r *Reader, room *Room, s *S) *E {
	if !take[E](room, 1) {
		r.Within(ErrSparse)
		return new(E)
	}
	return More(s)
}

// NewLarge is New for large values.
func NewLarge[P ~*T, T any](r *Reader, room *Room, p *P) *T {
	if *p == nil && !ChargePointer(room, *p) {
		r.Within(ErrSparse)
	}
	return New(p)
}

// PutLarge is Put for large keys or values. It does not make room for the pairs that
// follow, because they are not charged yet.
func PutLarge[M ~map[K]V, K comparable, V any](r *Reader, room *Room, m *M, k K, v V) {
	if r.err != nil {
		return
	}
	if !take[K](room, 1) || !take[V](room, 1) {
		r.Within(ErrSparse)
		return
	}
	if *m == nil {
		*m = make(M)
	}
	(*m)[k] = v
}
