package wire

import (
	"encoding/binary"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// Begin is a placeholder for the length of a message, which is not known yet. The
// message follows, then a call of End.
const Begin = 0

// End writes the length of a message that begins at start, directly after Begin. Most
// lengths fit the one byte of Begin.
func End(b []byte, start int) []byte {
	n := len(b) - start
	if n < 0x80 {
		b[start-1] = byte(n)
		return b
	}
	return endLong(b, start, n)
}

func endLong(b []byte, start, n int) []byte {
	more := protowire.SizeVarint(uint64(n)) - 1
	for range more {
		b = append(b, 0)
	}
	copy(b[start+more:], b[start:start+n])
	protowire.AppendVarint(b[:start-1], uint64(n))
	return b
}

// EndOrDrop is End for a message that is omitted if it is empty, with the n bytes
// before it: its tag and Begin.
func EndOrDrop(b []byte, start, n int) []byte {
	if len(b) == start {
		return b[:start-n]
	}
	return End(b, start)
}

// AppendBool appends a bool.
func AppendBool[T ~bool](b []byte, v T) []byte { return append(b, byte(protowire.EncodeBool(bool(v)))) }

// AppendInt appends a sint64 or sint32.
func AppendInt[T Signed](b []byte, v T) []byte {
	return AppendUint(b, protowire.EncodeZigZag(int64(v)))
}

// AppendUint appends a uint64 or uint32.
func AppendUint[T Unsigned](b []byte, v T) []byte {
	if uint64(v) < 0x80 {
		return append(b, byte(v))
	}
	return protowire.AppendVarint(b, uint64(v))
}

// AppendFloat32 appends a float.
func AppendFloat32[T ~float32](b []byte, v T) []byte {
	return protowire.AppendFixed32(b, math.Float32bits(float32(v)))
}

// AppendFloat64 appends a double.
func AppendFloat64[T ~float64](b []byte, v T) []byte {
	return protowire.AppendFixed64(b, math.Float64bits(float64(v)))
}

// AppendString appends a string with its length.
func AppendString[T ~string](b []byte, v T) []byte {
	return append(AppendUint(b, uint64(len(v))), v...)
}

// AppendBytes appends bytes with their length.
func AppendBytes(b, v []byte) []byte { return append(AppendUint(b, uint64(len(v))), v...) }

// AppendComplex appends the parts of a number that are not zero.
func AppendComplex[T ~complex64 | ~complex128](b []byte, v T) []byte {
	if x := real(complex128(v)); !Zero(x) {
		b = AppendFloat64(append(b, 1<<3|1), x)
	}
	if x := imag(complex128(v)); !Zero(x) {
		b = AppendFloat64(append(b, 2<<3|1), x)
	}
	return b
}

// Zero reports whether v is the value of an absent field: 0, but not -0.
func Zero[T Float](v T) bool { return math.Float64bits(float64(v)) == 0 }

// AppendBools appends a packed list with its length.
func AppendBools[S ~[]E, E ~bool](b []byte, s S) []byte {
	b = AppendUint(b, uint64(len(s)))
	for _, v := range s {
		b = AppendBool(b, v)
	}
	return b
}

// AppendInts appends a packed list with its length.
func AppendInts[S ~[]E, E Signed](b []byte, s S) []byte {
	b = append(b, Begin)
	start := len(b)
	for _, v := range s {
		switch x := protowire.EncodeZigZag(int64(v)); {
		case x < 1<<7:
			b = append(b, byte(x))
		case x < 1<<14:
			b = append(b, byte(x)|0x80, byte(x>>7))
		default:
			b = protowire.AppendVarint(b, x)
		}
	}
	return End(b, start)
}

// AppendUints appends a packed list with its length.
func AppendUints[S ~[]E, E Unsigned](b []byte, s S) []byte {
	b = append(b, Begin)
	start := len(b)
	for _, v := range s {
		switch x := uint64(v); {
		case x < 1<<7:
			b = append(b, byte(x))
		case x < 1<<14:
			b = append(b, byte(x)|0x80, byte(x>>7))
		default:
			b = protowire.AppendVarint(b, x)
		}
	}
	return End(b, start)
}

// AppendFloat32s appends a packed list with its length.
func AppendFloat32s[S ~[]E, E ~float32](b []byte, s S) []byte {
	b = AppendUint(b, uint64(len(s))*4)
	b = slices.Grow(b, len(s)*4)
	list := b[len(b) : len(b)+len(s)*4]
	for i := 0; i < len(s) && len(list) >= 4; i++ { // this form needs no bounds checks in the loop
		binary.LittleEndian.PutUint32(list, math.Float32bits(float32(s[i])))
		list = list[4:]
	}
	return b[:len(b)+len(s)*4]
}

// AppendFloat64s appends a packed list with its length.
func AppendFloat64s[S ~[]E, E ~float64](b []byte, s S) []byte {
	b = AppendUint(b, uint64(len(s))*8)
	b = slices.Grow(b, len(s)*8)
	list := b[len(b) : len(b)+len(s)*8]
	for i := 0; i < len(s) && len(list) >= 8; i++ { // this form needs no bounds checks in the loop
		binary.LittleEndian.PutUint64(list, math.Float64bits(float64(s[i])))
		list = list[8:]
	}
	return b[:len(b)+len(s)*8]
}
