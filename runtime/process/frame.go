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
	chunk      = 64 << 10  // what is allocated before anything of a body has come
	keepMax    = 1 << 20   // buffers above this size are not kept for the next frame
	frameRoom  = 256 << 10 // in a frame, beside messages: an error, its stack, numbers
)

// ErrProtocol: the process sent something that no process of this version does.
var ErrProtocol = errors.New("process: broke the protocol")

// frameKind says what is in a frame. The body of most is described where it is
// written.
type frameKind uint8

const (
	// To the process.
	frameCall  frameKind = iota + 1 // kind, edge, attempt (4 bytes each), payload: answered by frameAnswer
	frameServe                      // empty; answered by any number of frameSend, then frameAnswer
	frameAck                        // an error: the answer to one frameSend
	frameClose                      // empty: answered by frameAnswer, then the process ends
	// From the process.
	frameHello  // version, an error, hash: the first frame, when Start has returned
	frameAnswer // see Answer
	frameSend   // edge, instance (4 bytes each), payload
	frameAlive  // empty
)

// begin starts a frame in the memory of buf; end gives it its size.
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

// frames reads frames. Their sender may be hostile.
type frames struct {
	r     *bufio.Reader
	limit int // of the messages in a frame
}

func newFrames(r io.Reader, limit int) frames {
	return frames{bufio.NewReaderSize(r, chunk), limit}
}

// header reads the kind and the size of the next frame; io.EOF says that there is
// none.
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

// body reads size bytes into the memory of buf, or into more. It allocates no more
// than twice what has come, and a chunk: whoever claims much has to send it.
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

// fields takes a body apart. After the first that is missing all are empty.
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
