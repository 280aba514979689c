package process

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

const (
	headerSize = 5         // the size of the body, big endian, and the kind of frame
	chunk      = 64 << 10  // bytes allocated before any of a body has arrived
	keepMax    = 1 << 20   // larger buffers are not kept for the next frame
	frameRoom  = 256 << 10 // room in a frame for more than messages: an error, its stack, numbers
)

// ErrProtocol: the process sent data that no process of this version sends.
var ErrProtocol = errors.New("process: protocol violation")

// frameKind is the content of a frame. Most bodies are described where they are written.
type frameKind uint8

const (
	// To the process.
	frameCall  frameKind = iota + 1 // kind, edge, attempt (4 bytes each), payload; answered by frameAnswer
	frameServe                      // empty; answered by any number of frameSend, then frameAnswer
	frameAck                        // an error; answers one frameSend
	frameClose                      // empty; answered by frameAnswer, then the process exits
	// From the process.
	frameHello  // version, an error, hash; the first frame, after Start has returned
	frameAnswer // see Answer
	frameSend   // the messages of one send of Serve, as at the end of an Answer
	frameAlive  // empty
)

// begin starts a frame in the memory of buf; end writes its size into the header.
func begin(buf []byte, kind frameKind) []byte {
	if cap(buf) > keepMax {
		buf = nil
	}
	return append(buf[:0], 0, 0, 0, 0, byte(kind))
}

func end(frame []byte, limit int) error {
	size := len(frame) - headerSize
	if size > limit+frameRoom {
		return tooLarge(size, limit)
	}
	binary.BigEndian.PutUint32(frame, uint32(size))
	return nil
}

// frames reads frames, from a process that may be hostile.
type frames struct {
	r     *bufio.Reader
	limit int // for the messages in a frame
}

func newFrames(r io.Reader, limit int) frames {
	return frames{bufio.NewReaderSize(r, chunk), limit}
}

// header reads the kind and the size of the next frame. It returns io.EOF at the end of
// the connection.
func (f frames) header() (frameKind, int, error) {
	header, err := f.r.Peek(headerSize)
	if err != nil {
		if err == io.EOF && len(header) > 0 {
			err = io.ErrUnexpectedEOF
		}
		return 0, 0, err
	}
	kind, size := frameKind(header[4]), binary.BigEndian.Uint32(header)
	if int64(size) > int64(f.limit+frameRoom) {
		return 0, 0, fmt.Errorf("%w: a frame of %d bytes", ErrProtocol, size)
	}
	_, err = f.r.Discard(headerSize)
	return kind, int(size), err
}

// body reads size bytes into the memory of buf, which grows if needed. It allocates at
// most twice what has arrived, plus one chunk, so a process cannot make the parent
// allocate memory by announcing a large size.
func (f frames) body(buf []byte, size int) ([]byte, error) {
	if cap(buf) > keepMax {
		buf = nil
	}
	buf = buf[:0]
	for len(buf) < size {
		if len(buf) == cap(buf) {
			buf = slices.Grow(buf, min(size-len(buf), max(len(buf), chunk)))
		}
		n, err := io.ReadFull(f.r, buf[len(buf):min(size, cap(buf))])
		buf = buf[:len(buf)+n]
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return buf, err
		}
	}
	return buf, nil
}

func (f frames) next(buf []byte) (frameKind, []byte, error) {
	kind, size, err := f.header()
	if err != nil {
		return 0, buf, err
	}
	buf, err = f.body(buf, size)
	return kind, buf, err
}

// fields splits a body into fields. After the first missing field all are empty.
type fields struct {
	rest   []byte
	broken bool
}

func (f *fields) bytes(n int) []byte {
	if n < 0 || n > len(f.rest) {
		f.rest, f.broken = nil, true
		return nil
	}
	b := f.rest[:n:n]
	f.rest = f.rest[n:]
	return b
}

func (f *fields) byte() byte {
	if b := f.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (f *fields) number() int {
	if b := f.bytes(4); b != nil {
		return int(int32(binary.BigEndian.Uint32(b)))
	}
	return 0
}

func (f *fields) sized() []byte { return f.bytes(f.number()) }

func appendNumber(b []byte, n int) []byte { return binary.BigEndian.AppendUint32(b, uint32(int32(n))) }

func appendSized[B []byte | string](b []byte, v B) []byte {
	return append(appendNumber(b, len(v)), v...)
}
