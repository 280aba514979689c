package server

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
)

// post answers a request of the protocol. The status of the response is also the status
// of HTTP.
func (s *Server) post(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	b := buffers.Get().(*buffer)
	defer b.free(&s.bodies)
	var req protocol.Request
	res := s.answer(w, r, b, &req)
	if res.Status == protocol.Unauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if res.Status == protocol.TooMany || res.Status == protocol.Unavailable {
		w.Header().Set("Retry-After", "1")
	}
	size := int64(engine.ResultBytes(&res)) // counted before other goroutines run
	s.responses.Add(size)
	b.out = protocol.AppendResponse(b.out[:0], &req, &res)
	s.responses.Add(int64(cap(b.out)) - size)
	defer s.responses.Add(-int64(cap(b.out)))
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.config.WriteTimeout))
	answer(w, res.Status, b.out)
	s.metrics.request(req.Kind, res.Status, time.Since(start))
}

// answer reads a request and carries it out.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, b *buffer, req *protocol.Request) protocol.Result {
	if t := r.Header.Get("Content-Type"); t != "" && !isJSON(t) {
		return refusal(protocol.BadRequest, "the Content-Type must be application/json")
	}
	if r.Header.Get("Authorization") != "" && !s.access.granted(r, "") {
		w.Header().Set("Connection", "close") // the body is not worth reading
		return refusal(protocol.Unauthorized, "a valid token is needed")
	}
	if status, why := s.read(w, r, b); status != 0 {
		w.Header().Set("Connection", "close") // the rest of the body would be read as a request
		return refusal(status, why)
	}
	decoded, err := protocol.DecodeRequest(b.in)
	*req = decoded
	switch {
	case !s.access.granted(r, req.Head.Auth):
		return refusal(protocol.Unauthorized, "a valid token is needed")
	case err != nil:
		return refusal(protocol.BadRequest, err.Error())
	}
	ctx := r.Context()
	if req.Head.DebugTime != nil || isDebug(req.Op) {
		if !s.config.Debug {
			return refusal(protocol.Forbidden, "this server was not started with --debug")
		}
		if req.Head.DebugTime != nil {
			ctx = engine.WithTime(ctx, *req.Head.DebugTime)
		}
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	default:
		return refusal(protocol.TooMany, "too many requests are being carried out, try again later")
	}
	if s.crowded() {
		return refusal(protocol.TooMany, "too many bytes of responses are being sent, try again later")
	}
	res, err := s.backendOf(r).Do(engine.WithAdmission(ctx, s.admit), req.Op)
	switch {
	case s.crowded() && isRead(req.Op): // other responses were made while it was carried out
		return refusal(protocol.TooMany, "too many bytes of responses are being sent, try again later")
	case err != nil && r.Context().Err() != nil: // only the metrics see this
		return refusal(protocol.Unavailable, "the client has disconnected")
	case err != nil:
		return refusal(protocol.Internal, err.Error())
	}
	return res
}

func refusal(status int, why string) protocol.Result {
	return protocol.Result{Status: status, Error: why}
}

func isJSON(contentType string) bool {
	if contentType == "application/json" {
		return true
	}
	t, _, err := mime.ParseMediaType(contentType)
	return err == nil && t == "application/json"
}

func isDebug(op protocol.Operation) bool {
	switch op.(type) {
	case protocol.DebugStart, protocol.DebugStop, protocol.DebugReset, protocol.DebugSnap, protocol.DebugTick:
		return true
	}
	return false
}

func isRead(op protocol.Operation) bool {
	switch op.(type) {
	case protocol.PromiseGet, protocol.PromiseSearch, protocol.TaskGet, protocol.TaskSearch, protocol.ScheduleGet, protocol.ScheduleSearch:
		return true
	}
	return false
}

// crowded reports whether clients have not read so many responses that the memory for
// another one is missing.
func (s *Server) crowded() bool { return s.responses.Load() >= int64(s.config.ResponsesMax) }

// A buffer holds the text of a request and of its response.
type buffer struct {
	in, out  []byte
	reserved int64
}

var buffers = sync.Pool{New: func() any { return new(buffer) }}

const bufferKept = 64 << 10 // larger buffers are not kept for later requests

func (b *buffer) free(bodies *atomic.Int64) {
	bodies.Add(-b.reserved)
	b.reserved = 0
	if cap(b.in) > bufferKept {
		b.in = nil
	}
	if cap(b.out) > bufferKept {
		b.out = nil
	}
	buffers.Put(b)
}

// read reads the body of a request. A status that is not 0 refuses the request.
func (s *Server) read(w http.ResponseWriter, r *http.Request, b *buffer) (status int, why string) {
	if r.ContentLength > int64(s.config.BodyMax) {
		return s.tooLong()
	}
	control := http.NewResponseController(w)
	control.SetReadDeadline(time.Now().Add(s.config.BodyTimeout))
	b.in = b.in[:0]
	if !s.reserve(b, cap(b.in)) {
		return s.tooMany()
	}
	for {
		if len(b.in) == cap(b.in) {
			// At most twice the bytes that have arrived, whatever length the client has announced.
			size := min(max(2*cap(b.in), bufferMin), s.config.BodyMax+1)
			if !s.reserve(b, size-cap(b.in)) {
				return s.tooMany()
			}
			b.in = append(make([]byte, 0, size), b.in...)
		}
		n, err := r.Body.Read(b.in[len(b.in):cap(b.in)])
		b.in = b.in[:len(b.in)+n]
		switch {
		case len(b.in) > s.config.BodyMax:
			return s.tooLong()
		case errors.Is(err, io.EOF):
			control.SetReadDeadline(time.Time{})
			return 0, ""
		case err != nil:
			return protocol.BadRequest, "the request did not arrive completely"
		}
	}
}

const bufferMin = 2048 // most requests fit

// reserve counts bytes that are in memory for a request until its buffer is freed.
func (s *Server) reserve(b *buffer, n int) bool {
	b.reserved += int64(n)
	return s.bodies.Add(int64(n)) <= int64(s.config.BodiesMax)
}

func (s *Server) tooLong() (int, string) {
	return protocol.BadRequest, fmt.Sprintf("the request is longer than %d bytes", s.config.BodyMax)
}

func (s *Server) tooMany() (int, string) {
	return protocol.TooMany, "too many bytes of requests are being read, try again later"
}
