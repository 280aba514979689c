// Package fields reads the fields of messages between processes and of records on a disk.
//
//	r := fields.Reader{B: b, Damaged: ErrDamaged}
//	name, boot := r.Text(NameBytesMax), r.Uint()
//	for range r.Count(RolesMax) {
//		roles = append(roles, r.Text(NameBytesMax))
//	}
//	return r.End()
//
// The input may be damaged or hostile: reading never panics, and what a caller allocates for a list
// or a text is bounded by the length of the input and by a limit. A number has one
// encoding, the shortest varint, so equal values have equal encodings.
//
// Messages of users have generated codecs (package wire).
package fields

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Reader reads fields from the front of B. After the first error B is empty, and all methods return zero
// values.
type Reader struct {
	B       []byte
	Err     error
	Damaged error // if not nil, Err wraps it
}

// Fail sets the error, unless there is one.
func (r *Reader) Fail(format string, args ...any) {
	if r.Err == nil {
		r.Err = fmt.Errorf(format, args...)
		if r.Damaged != nil {
			r.Err = fmt.Errorf("%w: %w", r.Damaged, r.Err)
		}
	}
	r.B = nil
}

// End returns the error, also if bytes are left.
func (r *Reader) End() error {
	if len(r.B) > 0 {
		r.Fail("%d bytes follow the end", len(r.B))
	}
	return r.Err
}

var errShort = errors.New("it ends too early")

// Byte reads a byte.
func (r *Reader) Byte() byte {
	if len(r.B) == 0 {
		r.Fail("%w", errShort)
		return 0
	}
	v := r.B[0]
	r.B = r.B[1:]
	return v
}

// Uint reads a varint.
func (r *Reader) Uint() uint64 {
	if len(r.B) > 0 && r.B[0] < 0x80 {
		v := r.B[0]
		r.B = r.B[1:]
		return uint64(v)
	}
	return r.long()
}

func (r *Reader) long() uint64 {
	v, n := binary.Uvarint(r.B)
	switch {
	case n <= 0:
		r.Fail("a number is incomplete or too large")
		return 0
	case n > 1 && r.B[n-1] == 0:
		r.Fail("a number is not in its shortest form")
		return 0
	}
	r.B = r.B[n:]
	return v
}

// Int reads a varint of a number with a sign, as binary.AppendVarint writes it.
func (r *Reader) Int() int64 {
	v := r.Uint()
	return int64(v>>1) ^ -int64(v&1)
}

// Number reads a varint of at most limit.
func (r *Reader) Number(limit int) int {
	v := r.Uint()
	if v > uint64(limit) {
		r.Fail("a number is %d, at most %d", v, limit)
		return 0
	}
	return int(v)
}

// Uint32 reads a varint of 32 bits, which may overflow an int.
func (r *Reader) Uint32() uint32 {
	v := r.Uint()
	if v > math.MaxUint32 {
		r.Fail("a number is %d, at most %d", v, uint32(math.MaxUint32))
		return 0
	}
	return uint32(v)
}

// Count reads the length of a list of at most limit elements, each of which takes at least one byte.
func (r *Reader) Count(limit int) int {
	v := r.Uint()
	if v > uint64(limit) || v > uint64(len(r.B)) {
		r.Fail("a list has %d elements", v)
		return 0
	}
	return int(v)
}

// Fixed64 reads 8 bytes, the lowest first.
func (r *Reader) Fixed64() uint64 {
	if b := r.Take(8); len(b) == 8 {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// Fixed32 reads 4 bytes, the lowest first.
func (r *Reader) Fixed32() uint32 {
	if b := r.Take(4); len(b) == 4 {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

// Take reads n bytes. The result is part of the input.
func (r *Reader) Take(n uint64) []byte {
	if n > uint64(len(r.B)) {
		r.Fail("%w: %d bytes are left of %d", errShort, len(r.B), n)
		return nil
	}
	v := r.B[:n:n]
	r.B = r.B[n:]
	return v
}

// Bytes reads a length and as many bytes, at most limit. The result is part of the input.
func (r *Reader) Bytes(limit int) []byte {
	n := r.Uint()
	if n > uint64(limit) {
		r.Fail("a text has %d bytes, at most %d", n, limit)
		return nil
	}
	return r.Take(n)
}

// Text is like Bytes, and returns a copy.
func (r *Reader) Text(limit int) string { return string(r.Bytes(limit)) }

// AppendText appends what Text and Bytes read.
func AppendText[T string | []byte](b []byte, v T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(v))), v...)
}
