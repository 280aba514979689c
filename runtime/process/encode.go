package process

import (
	"errors"
	"fmt"
	"sync"

	"github.com/topogen/topogen/runtime/internal/chain"
	"github.com/topogen/topogen/runtime/wire"
)

const (
	// MessageLimitDefault bounds the encoding of a message, and of all that one call
	// returns, where Info says nothing: more would be copied for longer than a handler
	// should wait.
	MessageLimitDefault = 64 << 20
	MessageLimitMin     = 64 << 10 // below it errors would be larger than messages
	MessageLimitMax     = 1 << 30  // sizes are 31 bits, and a frame has more than messages

	messageOverhead = 16 // bytes that each message counts in addition: empty messages need a bound as well
)

var (
	// ErrEncode: a message cannot be encoded. Its receiver knows nothing of it.
	ErrEncode = errors.New("process: a message cannot be encoded")
	// ErrDecode: a message cannot be decoded, since UnmarshalBinary of a type refuses
	// what its MarshalBinary has written. Its receiver knows nothing of it.
	ErrDecode = errors.New("process: a message cannot be decoded")
	// ErrTooLarge: a message, or all that one call returns, is larger than
	// Info.MessageLimit. Nothing of it was sent; the process goes on.
	ErrTooLarge = errors.New("process: larger than the message limit")
)

// EncodeError is the error for a message that cannot be encoded. It matches
// ErrEncode, and wraps the reason: a [*wire.Error], an error that matches ErrTooLarge,
// or the panic of a method of the message. The message is at fault, and not its
// receiver.
type EncodeError struct {
	What string // the message: "camera -> detector: Frame"; "" if the caller names it
	Err  error
}

func (e *EncodeError) Error() string {
	what := "the message"
	if e.What != "" {
		what = e.What
	}
	advice := ""
	if errors.Is(e.Err, wire.ErrDeep) {
		advice = "; it must not contain itself: send a slice in place of a list of pointers"
	}
	return fmt.Sprintf("%s cannot be encoded: %v%s", what, e.Err, advice)
}

func (e *EncodeError) Unwrap() error { return e.Err }

func (e *EncodeError) Is(target error) bool { return target == ErrEncode }

// tooLarge is the error for a message of size bytes; 0: the size is not known.
func tooLarge(size, limit int) error {
	is := ""
	if size > 0 {
		is = fmt.Sprintf(", it is %d", size)
	}
	return fmt.Errorf("%w of %d bytes%s; send less at once, or raise message_limit (TOPOGEN_MESSAGE_LIMIT)", ErrTooLarge, limit, is)
}

// fits is ErrTooLarge for a message that is too large.
func fits(payload []byte, limit int) error {
	if size := len(payload) + messageOverhead; size > limit {
		return tooLarge(size, limit)
	}
	return nil
}

// Encode has a codec append a message to the memory of b. The codec may stop when
// what it returns is longer than the limit that it is given. The error is an
// *EncodeError, also where a method of the message panics.
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

// scratch has buffers for Check. The garbage collector empties it, so large buffers
// are kept for a short time only.
var scratch = sync.Pool{New: func() any { return new([]byte) }}

// Check encodes a message as Encode does, to see whether that can be done.
func Check(limit int, codec func(b []byte, limit int) ([]byte, error)) error {
	buffer := scratch.Get().(*[]byte)
	b, err := encode("", *buffer, limit, codec)
	if err == nil {
		*buffer = b
	}
	scratch.Put(buffer)
	return err
}

// Undecodable is the error of a call whose message cannot be decoded, because of err.
func Undecodable(err error) error { return fmt.Errorf("%w: %w", ErrDecode, err) }
