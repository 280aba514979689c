package server

import (
	"mime"
	"net/http"
	"time"

	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
)

// post answers a request of the protocol. The status of the response is also the status
// of HTTP.
func (s *Server) post(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	b := buffers.Get().(*buffer)
	defer b.free()
	var req protocol.Request
	c := &charge{server: s}
	defer c.end()
	res := s.answer(w, r, b, &req, c)
	if res.Status == protocol.Unauthorized {
		challenge(w)
	}
	if res.Status == protocol.TooMany || res.Status == protocol.Unavailable {
		w.Header().Set("Retry-After", "1")
	}
	c.Made(engine.ResultBytes(&res)) // counted before other goroutines run
	b.out = protocol.AppendResponse(b.out[:0], &req, &res)
	c.Made(cap(b.out))
	control := http.NewResponseController(w)
	control.SetWriteDeadline(time.Now().Add(s.config.WriteTimeout))
	s.send(w, control, res.Status, b.out, c)
	s.metrics.request(req.Kind, res.Status, time.Since(start))
}

// send sends a response, which c counts. Short responses are not ended to make room: those of
// all connections fit.
func (s *Server) send(w http.ResponseWriter, control *http.ResponseController, status int, body []byte, c *charge) {
	if cap(body) > bufferKept {
		place := s.slow.add(func() {
			c.end()
			control.SetWriteDeadline(time.Unix(1, 0))
		})
		defer s.slow.remove(place)
	}
	answer(w, status, body)
}

// answer reads a request and carries it out.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, b *buffer, req *protocol.Request, c *charge) protocol.Result {
	if t := r.Header.Get("Content-Type"); t != "" && !isJSON(t) {
		return refusal(protocol.BadRequest, "the Content-Type must be application/json")
	}
	from := &s.clients
	if !s.granted(r, "") {
		if r.Header.Get("Authorization") != "" { // the body is not worth reading
			return refusal(protocol.Unauthorized, "a valid token is needed")
		}
		from = &s.strangers // until the token in the head is known
	}
	if status, why := s.read(w, r, b, from); status != 0 {
		w.Header().Set("Connection", "close") // the rest of the body would be read as a request
		return refusal(status, why)
	}
	decoded, err := protocol.DecodeRequest(b.in)
	*req = decoded
	switch {
	case !s.granted(r, req.Head.Auth):
		return refusal(protocol.Unauthorized, "a valid token is needed")
	case err != nil:
		return refusal(protocol.BadRequest, err.Error())
	case !b.move(&s.clients):
		return refusal(s.tooMany())
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
	if !c.Admit() {
		return refusal(protocol.TooMany, "too many bytes of responses are being sent, try again later")
	}
	res, err := s.backendOf(r).Do(engine.WithAdmission(ctx, c), req.Op)
	switch {
	case isRead(req.Op) && !c.admitRead(&res): // other responses were made while it was carried out
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
