package fsm

import (
	"encoding/binary"
	"fmt"
)

// reader reads entries and snapshots, which may be damaged. After an error it reads
// zeros from an empty input.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
	}
	r.b = nil
}

func (r *reader) byte() byte {
	if len(r.b) == 0 {
		r.fail("ends too early")
		return 0
	}
	v := r.b[0]
	r.b = r.b[1:]
	return v
}

func (r *reader) uint() uint64 {
	if len(r.b) > 0 && r.b[0] < 0x80 {
		v := r.b[0]
		r.b = r.b[1:]
		return uint64(v)
	}
	return r.long()
}

func (r *reader) long() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail("a damaged number")
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) int() int64 {
	v := r.uint()
	return int64(v>>1) ^ -int64(v&1)
}

// bytes reads a length and that many bytes. The result shares memory with the input.
func (r *reader) bytes() []byte { return r.take(r.uint()) }

// sized is like bytes, with a length of four bytes.
func (r *reader) sized() []byte {
	if len(r.b) < 4 {
		r.fail("ends too early")
		return nil
	}
	n := binary.LittleEndian.Uint32(r.b)
	r.b = r.b[4:]
	return r.take(uint64(n))
}

func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.fail("ends too early: %d bytes are left of %d", len(r.b), n)
		return nil
	}
	v := r.b[:n:n]
	r.b = r.b[n:]
	return v
}

// text reads a string of at most limit bytes. what names it in an error.
func (r *reader) text(what string, limit int) string {
	b := r.bytes()
	if len(b) > limit {
		r.fail("%s must have at most %[3]d bytes, got %[2]d", what, len(b), limit)
	}
	return string(b)
}
