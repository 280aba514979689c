package server

import (
	"container/list"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// bodies limits what the bodies of requests use. Those of clients and those of strangers have
// limits of their own, so that a stranger can refuse no client.
type bodies struct {
	max     int64 // of all bodies in memory, in bytes
	bodyMax int   // of a body
	timeout time.Duration
	bytes   atomic.Int64
	slow    slow // bodies that arrive
}

// A buffer holds the text of a request and of its response.
type buffer struct {
	in, out  []byte
	of       *bodies // counts the request; nil: it is not read yet
	reserved atomic.Int64
	place    *list.Element // in of.slow; nil: the body has arrived, or is short
	ended    bool          // to make room
}

var buffers = sync.Pool{New: func() any { return new(buffer) }}

const (
	bufferMin  = 2048     // most requests fit
	bufferKept = 64 << 10 // larger buffers are not kept for later requests
)

func (b *buffer) free() {
	b.leave()
	if cap(b.in) > bufferKept {
		b.in = nil
	}
	if cap(b.out) > bufferKept {
		b.out = nil
	}
	buffers.Put(b)
}

// leave ends the counting of the bytes in memory.
func (b *buffer) leave() {
	if b.of != nil {
		b.arrived()
		b.of.bytes.Add(-b.reserved.Swap(0))
	}
	b.of, b.ended = nil, false
}

// arrived notes that the body is not being received any more.
func (b *buffer) arrived() {
	if b.place != nil {
		b.of.slow.remove(b.place)
		b.place = nil
	}
}

// move counts the bytes as other ones from now on. It reports false if these are too many.
func (b *buffer) move(to *bodies) bool {
	if b.of == to {
		return true
	}
	b.leave()
	b.of = to
	return b.reserve(cap(b.in))
}

// reserve counts bytes that are in memory for a request until its buffer is freed.
func (b *buffer) reserve(n int) bool {
	b.reserved.Add(int64(n))
	b.of.bytes.Add(int64(n))
	for b.of.bytes.Load() > b.of.max {
		if !b.of.slow.makeRoom() {
			return false
		}
	}
	return true
}

// read reads the body of a request. A status that is not 0 refuses the request.
func (s *Server) read(w http.ResponseWriter, r *http.Request, b *buffer, from *bodies) (status int, why string) {
	if r.ContentLength > int64(from.bodyMax) {
		return s.tooLong(from)
	}
	control := http.NewResponseController(w)
	control.SetReadDeadline(time.Now().Add(from.timeout))
	b.in, b.of = b.in[:0], from
	if !b.reserve(cap(b.in)) {
		return s.tooMany()
	}
	for {
		if len(b.in) == cap(b.in) {
			// At most twice the bytes that have arrived, whatever length the client has announced.
			size := min(max(2*cap(b.in), bufferMin), from.bodyMax+1)
			if !b.reserve(size - cap(b.in)) {
				return s.tooMany()
			}
			b.in = append(make([]byte, 0, size), b.in...)
		}
		if b.place == nil && cap(b.in) > bufferMin {
			b.place = from.slow.add(func() {
				b.ended = true
				from.bytes.Add(-b.reserved.Swap(0))
				control.SetReadDeadline(time.Unix(1, 0))
			})
		}
		n, err := r.Body.Read(b.in[len(b.in):cap(b.in)])
		b.in = b.in[:len(b.in)+n]
		if err != nil {
			b.arrived()
		}
		switch {
		case err != nil && b.ended:
			return s.tooMany()
		case len(b.in) > from.bodyMax:
			return s.tooLong(from)
		case errors.Is(err, io.EOF):
			control.SetReadDeadline(time.Time{})
			return 0, ""
		case err != nil:
			return protocol.BadRequest, "the request did not arrive completely"
		}
	}
}

func (s *Server) tooLong(from *bodies) (int, string) {
	if from.bodyMax < s.config.BodyMax {
		return protocol.Unauthorized, fmt.Sprintf("a request of more than %d bytes needs its token in the header Authorization", from.bodyMax)
	}
	return protocol.BadRequest, fmt.Sprintf("the request is longer than %d bytes", from.bodyMax)
}

func (s *Server) tooMany() (int, string) {
	return protocol.TooMany, "too many bytes of requests are being read, try again later"
}
