package fsm

import (
	"bytes"
	"errors"
	"fmt"
)

// Codec makes bytes of a value and a value of bytes. Consume is given a zero value,
// and keeps nothing of b. Equal values give equal bytes, so that all replicas write
// the same: they depend on no order of a map.
type Codec[T any] struct {
	Append  func(b []byte, v *T) ([]byte, error)
	Consume func(b []byte, v *T) error

	// Parts are the names of fields of T that are maps or lists, for a state that is too
	// large to be encoded at once; "" alone is T itself. Keys of the maps are strings or
	// integers. With Parts, Append is given values that have some entries of one of the
	// fields, and Consume adds what it reads to v: what it has read of several pieces is
	// the whole.
	Parts []string
}

// ErrCodec: a codec cannot write a value, or not read what it has written. A proposal
// that ends with it is known not to be applied.
var ErrCodec = errors.New("fsm: the codec cannot write and read the value")

// Encode appends v, and reads what it has appended into scratch, a zero value: what a
// log holds that cannot be read ends every replica, at each start again. An error
// matches [ErrCodec], also where the codec has panicked, and says which type it is.
//
// In tests and in builds with -race it fails, too, where what was read is written in
// other bytes.
func (c Codec[T]) Encode(b []byte, v, scratch *T) ([]byte, error) {
	begin := len(b)
	b, err := c.append(b, v)
	if err != nil {
		return b, fmt.Errorf("%w: a %T cannot be written: %w", ErrCodec, *v, err)
	}
	if err := c.consume(b[begin:], scratch); err != nil {
		return b[:begin], fmt.Errorf("%w: a %T cannot be read from the %d bytes that were written of it: %w", ErrCodec, *v, len(b)-begin, err)
	}
	if !checked() {
		return b, nil
	}
	again, err := c.append(nil, scratch)
	if err != nil {
		return b[:begin], fmt.Errorf("%w: a %T cannot be written when it was read: %w", ErrCodec, *v, err)
	}
	if !bytes.Equal(again, b[begin:]) {
		return b[:begin], fmt.Errorf("%w: a %T is written in %d bytes, and in other bytes when it was read: the bytes must depend on the value alone", ErrCodec, *v, len(b)-begin)
	}
	return b, nil
}

// Decode reads a value into v, a zero value. A panic of the codec is an error.
func (c Codec[T]) Decode(b []byte, v *T) error { return c.consume(b, v) }

func (c Codec[T]) complete() bool { return c.Append != nil && c.Consume != nil }

// append and consume are the codec's own, with a panic made an error.
func (c Codec[T]) append(b []byte, v *T) (_ []byte, err error) {
	defer recovered(&err)
	return c.Append(b, v)
}

func (c Codec[T]) consume(b []byte, v *T) (err error) {
	defer recovered(&err)
	return c.Consume(b, v)
}

var errCodecPanicked = errors.New("codec panicked")

func recovered(err *error) {
	if value := recover(); value != nil {
		*err = fmt.Errorf("%w: %v", errCodecPanicked, value)
	}
}
