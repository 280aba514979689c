package grpc

import (
	"encoding/binary"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/topogen/topogen/runtime/transport"
)

// Tags of transport.proto.
const (
	tagMessages byte = 1<<3 | byte(protowire.BytesType)   // Frame.messages
	tagChunk    byte = 2<<3 | byte(protowire.BytesType)   // Frame.chunk
	tagGroup    byte = 1<<3 | byte(protowire.Fixed64Type) // Messages.group, Chunk.group
	tagPayload  byte = 2<<3 | byte(protowire.BytesType)   // Messages.payloads
	tagSize     byte = 2<<3 | byte(protowire.VarintType)  // Chunk.size
	tagOffset   byte = 3<<3 | byte(protowire.VarintType)  // Chunk.offset
	tagData     byte = 4<<3 | byte(protowire.BytesType)   // Chunk.data
)

// sameGroup returns how many messages at the front have the same group, and the size of
// a Messages that holds them.
func sameGroup(m []transport.Message) (n, size int) {
	size = 1 + 8
	for n < len(m) && m[n].Group == m[0].Group {
		size += payloadSize(m[n].Payload)
		n++
	}
	return n, size
}

func payloadSize(p []byte) int { return 1 + protowire.SizeBytes(len(p)) }

// room is the remaining room in a frame of small messages.
type room struct {
	messages, bytes int
	used            bool
}

// take returns how many messages at the front go into the frame, and the size of a
// Messages that holds them. A message of at least aloneBytes goes alone.
func (r *room) take(m []transport.Message) (n, size int) {
	size = 1 + 8
	for n < len(m) && r.messages > 0 {
		length, one := len(m[n].Payload), payloadSize(m[n].Payload)
		if length > wholeBytesMax || r.used && (length >= aloneBytes || one > r.bytes) {
			break
		}
		r.used = true
		r.messages--
		r.bytes -= one
		size += one
		n++
		if length >= aloneBytes {
			r.messages = 0
		}
	}
	return n, size
}

// messagesSize returns the size that a Messages of inner bytes takes in a frame.
func messagesSize(inner int) int { return 1 + protowire.SizeBytes(inner) }

// appendMessagesHead appends a frame with one message, without its payload, which must
// follow.
func appendMessagesHead(b []byte, m transport.Message) []byte {
	b = protowire.AppendVarint(append(b, tagMessages), uint64(1+8+payloadSize(m.Payload)))
	b = binary.LittleEndian.AppendUint64(append(b, tagGroup), m.Group)
	return protowire.AppendVarint(append(b, tagPayload), uint64(len(m.Payload)))
}

// appendMessages appends a frame with messages.
func appendMessages(b []byte, m []transport.Message) []byte {
	for len(m) > 0 {
		n, size := sameGroup(m)
		b = protowire.AppendVarint(append(b, tagMessages), uint64(size))
		b = binary.LittleEndian.AppendUint64(append(b, tagGroup), m[0].Group)
		for i := range n {
			b = protowire.AppendBytes(append(b, tagPayload), m[i].Payload)
		}
		m = m[n:]
	}
	return b
}

// chunk is a part of a large message.
type chunk struct {
	group        uint64
	size, offset uint64
	data         []byte
}

// appendChunkHead appends a frame with a chunk, without the data, which must follow.
func appendChunkHead(b []byte, c *chunk) []byte {
	head := 1 + 8 + 1 + protowire.SizeVarint(c.size) + 1 + protowire.SizeVarint(c.offset) + 1 + protowire.SizeVarint(uint64(len(c.data)))
	b = protowire.AppendVarint(append(b, tagChunk), uint64(head+len(c.data)))
	b = binary.LittleEndian.AppendUint64(append(b, tagGroup), c.group)
	b = protowire.AppendVarint(append(b, tagSize), c.size)
	b = protowire.AppendVarint(append(b, tagOffset), c.offset)
	return protowire.AppendVarint(append(b, tagData), uint64(len(c.data)))
}

// receiver receives the contents of a frame, in order.
type receiver interface {
	messages(group uint64, payloads [][]byte)
	chunk(c chunk) error
}

var errFrameMessages = fmt.Errorf("more than %d messages in a frame", frameMessagesMax)

// readFrame decodes a frame and passes its contents to r. Payloads are parts of b.
func readFrame(b []byte, r receiver) error {
	room := frameMessagesMax
	f := fieldsOf(b)
	for f.next() {
		switch f.number {
		case 1:
			group, payloads, err := readMessages(f.bytes(), room)
			if f.err != nil || err != nil {
				return errors.Join(f.err, err)
			}
			if len(payloads) > 0 {
				r.messages(group, payloads)
			}
			room -= max(len(payloads), 1) // an empty one counts, too
			if room < 0 {
				return errFrameMessages
			}
		case 2:
			c, err := readChunk(f.bytes())
			if f.err != nil || err != nil {
				return errors.Join(f.err, err)
			}
			if err := r.chunk(c); err != nil {
				return err
			}
		default:
			f.skip()
		}
	}
	return f.err
}

// readMessages reads a Messages with at most room payloads.
func readMessages(b []byte, room int) (group uint64, payloads [][]byte, err error) {
	count := 0
	for f := fieldsOf(b); f.next(); f.skip() { // counts first, to allocate once
		if f.number == 2 {
			count++
		}
	}
	if count > room {
		return 0, nil, errFrameMessages
	}
	payloads = make([][]byte, 0, count)
	f := fieldsOf(b)
	for f.next() {
		switch f.number {
		case 1:
			group = f.fixed64()
		case 2:
			payloads = append(payloads, f.bytes())
		default:
			f.skip()
		}
	}
	return group, payloads, f.err
}

func readChunk(b []byte) (c chunk, err error) {
	f := fieldsOf(b)
	for f.next() {
		switch f.number {
		case 1:
			c.group = f.fixed64()
		case 2:
			c.size = f.varint()
		case 3:
			c.offset = f.varint()
		case 4:
			c.data = f.bytes()
		default:
			f.skip()
		}
	}
	return c, f.err
}
