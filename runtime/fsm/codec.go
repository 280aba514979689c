package fsm

import (
	"bytes"
	"errors"
	"fmt"
)

// Codec encodes and decodes values. Append appends the encoding of v to b. Consume
// decodes b into v, which is a zero value, and keeps no reference to b. Equal values
// must have equal encodings on all replicas, so the bytes must not depend on the order
// of a map. Several goroutines may call both functions at the same time.
type Codec[T any] struct {
	Append  func(b []byte, v *T) ([]byte, error)
	Consume func(b []byte, v *T) error

	// Parts names the fields of T that are maps or lists, for a state that is too large
	// to be encoded at once. A single "" means T itself. The keys of the maps are
	// strings or integers. With Parts, Append is called with values that hold some
	// entries of one of the fields, and Consume adds what it reads to v. So v is
	// complete when all chunks are read.
	Parts []string
}

// ErrCodec means that a codec cannot encode a value, or cannot decode its own encoding.
// A proposal with this error was not applied. A snapshot with this error is not kept.
var ErrCodec = errors.New("fsm: the codec cannot encode and decode the value")

// Encode appends the encoding of v to b, and decodes it into scratch, a zero value. This
// protects the log: an update that cannot be decoded would stop every replica at each
// start. The error matches [ErrCodec] and names the type, also if the codec panicked.
//
// In tests and in builds with -race, Encode also fails if the decoded value has another
// encoding.
func (c Codec[T]) Encode(b []byte, v, scratch *T) ([]byte, error) {
	begin := len(b)
	b, err := c.append(b, v)
	if err != nil {
		return b, fmt.Errorf("%w: a %T cannot be encoded: %w", ErrCodec, *v, err)
	}
	if err := c.consume(b[begin:], scratch); err != nil {
		return b[:begin], fmt.Errorf("%w: a %T cannot be decoded from its encoding of %d bytes: %w", ErrCodec, *v, len(b)-begin, err)
	}
	if !checked() {
		return b, nil
	}
	again, err := c.append(nil, scratch)
	if err != nil {
		return b[:begin], fmt.Errorf("%w: a decoded %T cannot be encoded again: %w", ErrCodec, *v, err)
	}
	if !bytes.Equal(again, b[begin:]) {
		return b[:begin], fmt.Errorf("%w: a %T has an encoding of %d bytes, and another encoding after it was decoded: the bytes must depend only on the value", ErrCodec, *v, len(b)-begin)
	}
	return b, nil
}

// Decode decodes b into v, a zero value. A panic of the codec is returned as an error.
func (c Codec[T]) Decode(b []byte, v *T) error { return c.consume(b, v) }

// trial decodes encoded values, or chunks of one value, and drops them, to find out
// whether the codec can read what it has written.
type trial[T any] struct {
	codec Codec[T]
	err   error // of the codec
}

func (t *trial[T]) consume(b []byte, _ *T) error {
	t.err = t.codec.consume(b, new(T))
	return t.err
}

// result returns the error for a snapshot that could not be decoded because of err.
func (t *trial[T]) result(err error) error {
	switch {
	case t.err != nil:
		return fmt.Errorf("%w: a %T cannot be decoded from its encoding: %w", ErrCodec, *new(T), t.err)
	case err != nil:
		return fmt.Errorf("fsm: a snapshot cannot be decoded: %w", err)
	}
	return nil
}

func (c Codec[T]) complete() bool { return c.Append != nil && c.Consume != nil }

// append and consume call the codec and return a panic as an error.
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
