package wire

import (
	"encoding/binary"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// Signed, Unsigned and Float are the number types of messages.
type (
	Signed interface {
		~int | ~int8 | ~int16 | ~int32 | ~int64
	}
	Unsigned interface {
		~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr
	}
	Float interface{ ~float32 | ~float64 }
)

// Bool reads a bool.
func Bool[T ~bool](r *Reader, v *T) { *v = r.varint() != 0 }

// Int reads a signed number: sint64, or sint32 if the Go type is smaller.
func Int[T Signed](r *Reader, v *T) {
	x := protowire.DecodeZigZag(r.varint())
	if *v = T(x); int64(*v) != x {
		r.fail(ErrRange)
	}
}

// Uint reads an unsigned number: uint64, or uint32 if the Go type is smaller.
func Uint[T Unsigned](r *Reader, v *T) {
	x := r.varint()
	if *v = T(x); uint64(*v) != x {
		r.fail(ErrRange)
	}
}

// Float32 reads a float.
func Float32[T ~float32](r *Reader, v *T) {
	if len(r.b)-r.at < 4 {
		r.fail(ErrTruncated)
		return
	}
	*v = T(math.Float32frombits(binary.LittleEndian.Uint32(r.b[r.at:])))
	r.at += 4
}

// Float64 reads a double.
func Float64[T ~float64](r *Reader, v *T) {
	if len(r.b)-r.at < 8 {
		r.fail(ErrTruncated)
		return
	}
	*v = T(math.Float64frombits(binary.LittleEndian.Uint64(r.b[r.at:])))
	r.at += 8
}

// String reads a string, which may hold any bytes.
func String[T ~string](r *Reader, v *T) { *v = T(r.Message()) }

// Bytes reads a slice of bytes. An empty one becomes nil.
func Bytes[T ~[]byte](r *Reader, v *T) { *v = append(T(nil), r.Message()...) }

// Array reads an array of bytes, which must have the same length.
func Array(r *Reader, v []byte) {
	b := r.Message()
	if len(b) != len(v) && r.err == nil {
		r.Within(ErrLength)
	}
	copy(v, b)
}

// Complex reads a message with the real part as field 1 and the imaginary part as field
// 2.
func Complex[T ~complex64 | ~complex128](r *Reader, v *T) {
	parts := [2]float64{real(complex128(*v)), imag(complex128(*v))}
	c := Read(r.Message())
	for c.Next() {
		switch c.Tag {
		case 1<<3 | 1:
			Float64(&c, &parts[0])
		case 2<<3 | 1:
			Float64(&c, &parts[1])
		default:
			c.Skip()
		}
	}
	r.Within(c.End("", "1 real 2 imag"))
	*v = T(complex(parts[0], parts[1]))
}
