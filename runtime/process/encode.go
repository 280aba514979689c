package process

import (
	"errors"
	"fmt"
	"sync"

	"github.com/topogen/topogen/runtime/internal/chain"
	"github.com/topogen/topogen/runtime/wire"
)

const (
	// MessageLimitDefault limits the encoding of a message, and of all messages that one
	// call returns, unless Info sets another limit. Copying more would take longer than a
	// handler should wait.
	MessageLimitDefault = 64 << 20
	MessageLimitMin     = 64 << 10 // with a lower limit, errors would be larger than messages
	MessageLimitMax     = 1 << 30  // sizes have 31 bits, and a frame holds more than messages

	messageOverhead = 16 // bytes added to each message's size, so that the number of empty messages is limited too
)

var (
	// ErrEncode: a message cannot be encoded. Its receiver did not get it.
	ErrEncode = errors.New("process: a message cannot be encoded")
	// ErrDecode: a message cannot be decoded, because UnmarshalBinary of a type rejects
	// the output of its MarshalBinary. Its receiver did not get it.
	ErrDecode = errors.New("process: a message cannot be decoded")
	// ErrTooLarge: a message, or the total that one call returns, is larger than
	// Info.MessageLimit. No part of it was sent, and the process keeps running.
	ErrTooLarge = errors.New("process: larger than the message limit")
)

// EncodeError is the error for a message that cannot be encoded. It matches ErrEncode and
// wraps the reason: a [*wire.Error], an error that matches ErrTooLarge, or the panic of a
// method of the message. The fault is in the message, not in its receiver.
type EncodeError struct {
	What string // the message: "camera -> detector: Frame"; "" if the caller adds the name
	Err  error
}

func (e *EncodeError) Error() string {
	what := "the message"
	if e.What != "" {
		what = e.What
	}
	advice := ""
	if errors.Is(e.Err, wire.ErrDeep) {
		advice = "; it must not contain itself: send a slice instead of a list of pointers"
	}
	return fmt.Sprintf("%s cannot be encoded: %v%s", what, e.Err, advice)
}

func (e *EncodeError) Unwrap() error { return e.Err }

func (e *EncodeError) Is(target error) bool { return target == ErrEncode }

// tooLarge returns the error for a message of size bytes; 0 means that the size is
// unknown.
func tooLarge(size, limit int) error {
	got := ""
	if size > 0 {
		got = fmt.Sprintf(", got %d", size)
	}
	return fmt.Errorf("%w of %d bytes%s; send less at once, or raise message_limit (TOPOGEN_MESSAGE_LIMIT)", ErrTooLarge, limit, got)
}

// fits returns ErrTooLarge if the message is larger than the limit.
func fits(payload []byte, limit int) error {
	if size := len(payload) + messageOverhead; size > limit {
		return tooLarge(size, limit)
	}
	return nil
}

// Encode lets a codec append a message to the memory of b. The codec may stop when its
// output is longer than the given limit. The error is an *EncodeError, also if a method
// of the message panics.
func Encode(what string, b []byte, limit int, codec func(b []byte, limit int) ([]byte, error)) ([]byte, error) {
	if cap(b) > keepMax {
		b = nil
	}
	return encode(what, b, limit, codec)
}

func encode(what string, b []byte, limit int, codec func(b []byte, limit int) ([]byte, error)) (_ []byte, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = &EncodeError{what, chain.OfPanic(cause)}
		}
	}()
	b, err = codec(b[:0], limit)
	if errors.Is(err, wire.ErrLarge) {
		err = tooLarge(0, limit)
	} else if err == nil {
		err = fits(b, limit)
	}
	if err != nil {
		return nil, &EncodeError{what, err}
	}
	return b, nil
}

// scratch holds buffers for Check. The garbage collector empties it, so it does not keep
// large buffers for long.
var scratch = sync.Pool{New: func() any { return new([]byte) }}

// Check encodes a message as Encode does, and returns the error.
func Check(limit int, codec func(b []byte, limit int) ([]byte, error)) error {
	buffer := scratch.Get().(*[]byte)
	b, err := encode("", *buffer, limit, codec)
	if err == nil {
		*buffer = b
	}
	scratch.Put(buffer)
	return err
}

// Undecodable returns the error of a call whose message cannot be decoded because of err.
func Undecodable(err error) error { return fmt.Errorf("%w: %w", ErrDecode, err) }
