package session

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/topogen/topogen/runtime/internal/fields"
)

// ErrMalformed matches the errors of frames that no session of this version has sent. Such
// a frame has no effect, and it is counted.
var ErrMalformed = errors.New("malformed frame")

func malformed(format string, args ...any) error {
	return fmt.Errorf("session: %w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}

// The kind of a frame is its first byte. The format of each is in doc.go.
const (
	kindHello   = 1
	kindRefusal = 2
	kindAck     = 3
	kindData    = 4
	kindDataAck = 5 // data with an acknowledgement

	flagAckNow = 0x80 // added to the kind of data: the sender waits for the acknowledgement
)

// headerBytesMax is the length of the longest header of a data frame: the kind, two boot
// ids, five varints, the length of the bitmap and the bitmap.
const headerBytesMax = 1 + 16 + 5*binary.MaxVarintLen64 + 2 + bitmapBytesMax

// itemsBytesMax is the room for messages, whatever header a frame gets when it is sent again.
const itemsBytesMax = FrameBytesMax - headerBytesMax

const bitmapBytesMax = WindowFrames / 8

// header is the part of a data or acknowledgement frame before its messages.
type header struct {
	from, to uint64 // boot ids
	hasAck   bool
	ack      ack
	hasData  bool
	ackNow   bool   // the frame must be acknowledged without a delay
	number   uint64 // of the frame, from 1
	stamp    uint64 // time of this transmission in nanoseconds, increasing from frame to frame
}

// ack says which frames have arrived.
type ack struct {
	last   uint64 // this frame and all before it have arrived
	echo   uint64 // the highest stamp that has arrived
	delay  uint64 // microseconds between the arrival of echo and this acknowledgement
	bitmap []byte // bit i: frame last+2+i has arrived, too
}

// append appends the header.
func (h *header) append(b []byte) []byte {
	kind := byte(kindData)
	if h.hasAck {
		kind = kindDataAck
		if !h.hasData {
			kind = kindAck
		}
	}
	if h.ackNow {
		kind |= flagAckNow
	}
	b = append(b, kind)
	b = binary.LittleEndian.AppendUint64(b, h.from)
	b = binary.LittleEndian.AppendUint64(b, h.to)
	if h.hasAck {
		b = binary.AppendUvarint(b, h.ack.last)
		b = binary.AppendUvarint(b, h.ack.echo)
		b = binary.AppendUvarint(b, h.ack.delay)
		b = binary.AppendUvarint(b, uint64(len(h.ack.bitmap)))
		b = append(b, h.ack.bitmap...)
	}
	if h.hasData {
		b = binary.AppendUvarint(b, h.number)
		b = binary.AppendUvarint(b, h.stamp)
	}
	return b
}

// parseHeader reads the header of a data or acknowledgement frame and returns the rest.
func parseHeader(frame []byte, h *header) (body []byte, err error) {
	r := fields.Reader{B: frame}
	kind := r.Byte()
	h.from, h.to = r.Fixed64(), r.Fixed64()
	h.ackNow = kind&flagAckNow != 0
	kind &^= flagAckNow
	h.hasAck, h.hasData = kind != kindData, kind != kindAck
	if h.hasAck {
		h.ack = ack{last: r.Uint(), echo: r.Uint(), delay: r.Uint(), bitmap: r.Bytes(bitmapBytesMax)}
	}
	if h.hasData {
		h.number, h.stamp = r.Uint(), r.Uint()
	}
	switch {
	case r.Err != nil:
		return nil, malformed("the header of kind %d must be complete, got %d bytes", kind, len(frame))
	case h.ackNow && !h.hasData:
		return nil, malformed("an acknowledgement must not ask for an acknowledgement")
	case h.hasData && h.number == 0:
		return nil, malformed("the number of a frame must not be 0")
	case h.hasData && len(r.B) == 0:
		return nil, malformed("data frame %d must hold a message", h.number)
	case !h.hasData && len(r.B) > 0:
		return nil, malformed("an acknowledgement must end after its bitmap, got %d more bytes", len(r.B))
	}
	return r.B, nil
}
