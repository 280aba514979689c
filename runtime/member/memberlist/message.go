package memberlist

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// The library allocates what a message announces, before it has come: an array for all members
// of an exchange, a buffer for a message of a user, and what compressed data expands to. So each
// message is checked before the library gets it. Only messages that the library of another node
// sends with the settings of [Config] pass: they are not compressed or encrypted, and have no
// label and no data of a user.

// Types of messages of the library.
const (
	typePing         = 0
	typeIndirectPing = 1
	typeAck          = 2
	typeSuspect      = 3
	typeAlive        = 4
	typeDead         = 5
	typePushPull     = 6
	typeCompound     = 7
	typeNack         = 11
	typeCRC          = 12
	typeError        = 13
)

// nodeMin is the least number of bytes of a member in an exchange: a map with seven keys. The
// library takes about 130 bytes of memory for it.
const nodeMin = 50

var (
	errAnnounced = errors.New("memberlist: the message announces more bytes than may come")
	errType      = errors.New("memberlist: nodes do not send messages of this type")
	errForm      = errors.New("memberlist: the form of the message is invalid")
)

// checkPacket checks a packet: one message, or several in a compound one.
func checkPacket(b []byte) error {
	if len(b) >= 5 && b[0] == typeCRC {
		b = b[5:]
	}
	if len(b) == 0 || b[0] != typeCompound {
		return checkPart(b)
	}
	if len(b) < 2 || len(b) < 2+2*int(b[1]) {
		return errAnnounced
	}
	n := int(b[1])
	lengths, parts := b[2:2+2*n], b[2+2*n:]
	for ; len(lengths) > 0; lengths = lengths[2:] {
		length := int(binary.BigEndian.Uint16(lengths))
		if length > len(parts) {
			return errAnnounced
		}
		if err := checkPart(parts[:length]); err != nil {
			return err
		}
		parts = parts[length:]
	}
	return nil
}

// checkPart checks a message of a packet.
func checkPart(b []byte) error {
	if len(b) == 0 {
		return errForm
	}
	switch b[0] {
	case typePing, typeIndirectPing, typeAck, typeNack, typeSuspect, typeAlive, typeDead:
		in := &input{rest: b[1:], left: len(b) - 1}
		return in.fields(nil)
	}
	return fmt.Errorf("%w, got %d in a packet", errType, b[0])
}

// checkStream reads and checks the message of a stream.
func checkStream(in *input) error {
	kind, err := in.take(1)
	if err != nil {
		return err
	}
	switch kind[0] {
	case typePing, typeAck, typeError:
		return in.fields(nil)
	case typePushPull:
		return in.exchange()
	}
	return fmt.Errorf("%w, got %d in a stream", errType, kind[0])
}

// input is a message in MessagePack that is checked while it arrives.
type input struct {
	rest []byte        // what has come and was not checked yet
	left int           // bytes that may still come, with rest
	more func() []byte // waits for the next bytes; nil: no more come
	held [][]byte      // all that has come
}

// exchange checks the lists of members that two nodes exchange.
func (in *input) exchange() error {
	nodes, seen := uint64(0), 0
	err := in.fields(func(key string, v value) error {
		switch key {
		case "Nodes":
			nodes = v.number
		case "UserStateLen":
			if v.number > 0 {
				return fmt.Errorf("%w: it must have no data of a user", errForm)
			}
		case "Join":
		default:
			return errForm
		}
		seen++
		return nil
	})
	if err != nil {
		return err
	}
	if seen != 3 || nodes > uint64(in.left/nodeMin) {
		return errAnnounced
	}
	for range nodes {
		before := in.left
		if err := in.fields(nil); err != nil {
			return err
		}
		if before-in.left < nodeMin {
			return fmt.Errorf("%w: a member must have at least %d bytes", errForm, nodeMin)
		}
	}
	return nil
}

// fields checks a map whose values are not containers. It calls each, if it is not nil, with each
// entry.
func (in *input) fields(each func(key string, v value) error) error {
	b, err := in.take(1)
	if err != nil {
		return err
	}
	if b[0]&0xf0 != 0x80 {
		return errForm
	}
	for range b[0] & 0x0f {
		if b, err = in.take(1); err != nil {
			return err
		}
		if b[0]&0xe0 != 0xa0 {
			return errForm
		}
		key, err := in.take(int(b[0] & 0x1f))
		if err != nil {
			return err
		}
		name := string(key)
		v, err := in.value()
		if err == nil && each != nil {
			err = each(name, v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// value is a number; of other kinds it is 0.
type value struct{ number uint64 }

// value checks a value: nil, a boolean, an integer, a text or bytes.
func (in *input) value() (value, error) {
	b, err := in.take(1)
	if err != nil {
		return value{}, err
	}
	switch c := b[0]; {
	case c < 0x80 || c >= 0xe0:
		return value{uint64(int64(int8(c)))}, nil
	case c&0xe0 == 0xa0:
		return value{}, in.skip(uint64(c & 0x1f))
	case c == 0xc0 || c == 0xc2 || c == 0xc3: // nil, false, true
		return value{}, nil
	case c >= 0xcc && c <= 0xd3: // integers of 1, 2, 4 and 8 bytes, without and with a sign
		n, err := in.number(1 << ((c - 0xcc) & 3))
		return value{n}, err
	case c >= 0xc4 && c <= 0xc6: // bytes with a length of 1, 2 or 4 bytes
		return value{}, in.long(1 << (c - 0xc4))
	case c >= 0xd9 && c <= 0xdb: // a text with a length of 1, 2 or 4 bytes
		return value{}, in.long(1 << (c - 0xd9))
	}
	return value{}, errForm
}

// long checks a text or bytes after a length of n bytes.
func (in *input) long(n int) error {
	length, err := in.number(n)
	if err != nil {
		return err
	}
	return in.skip(length)
}

// number reads a number of n bytes without a sign.
func (in *input) number(n int) (v uint64, err error) {
	b, err := in.take(n)
	for _, c := range b {
		v = v<<8 | uint64(c)
	}
	return v, err
}

// take returns the next n bytes. They are few: a name or a number.
func (in *input) take(n int) ([]byte, error) {
	if n > in.left {
		return nil, errAnnounced
	}
	for len(in.rest) < n {
		more := in.next()
		if more == nil {
			return nil, io.ErrUnexpectedEOF
		}
		in.rest = append(in.rest[:len(in.rest):len(in.rest)], more...)
	}
	b := in.rest[:n]
	in.rest, in.left = in.rest[n:], in.left-n
	return b, nil
}

func (in *input) skip(n uint64) error {
	if n > uint64(in.left) {
		return errAnnounced
	}
	in.left -= int(n)
	for n > uint64(len(in.rest)) {
		n -= uint64(len(in.rest))
		if in.rest = in.next(); in.rest == nil {
			return io.ErrUnexpectedEOF
		}
	}
	in.rest = in.rest[n:]
	return nil
}

// next waits for more bytes.
func (in *input) next() []byte {
	if in.more == nil {
		return nil
	}
	b := in.more()
	if b != nil {
		in.held = append(in.held, b)
	}
	return b
}
