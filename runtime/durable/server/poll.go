package server

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
)

// poll sends the messages for a process as server-sent events, until the client, the
// backend or the server ends the stream.
func (s *Server) poll(w http.ResponseWriter, r *http.Request, group, pid string) {
	if why := checkName("group", group) + checkName("pid", pid); why != "" {
		refuse(w, protocol.BadRequest, why)
		return
	}
	connection, err := s.backendOf(r).Connect(group, pid)
	switch {
	case errors.Is(err, engine.ErrConnectionNames):
		refuse(w, protocol.BadRequest, err.Error())
		return
	case err != nil: // at capacity, or closing
		w.Header().Set("Retry-After", "1")
		refuse(w, protocol.Unavailable, err.Error())
		return
	}
	defer connection.Close()
	s.metrics.streams.Add(1)
	defer s.metrics.streams.Add(-1)
	if c := connOf(r); c != nil {
		limitBuffer(c.Conn)
	}
	t := &stream{w: w, control: http.NewResponseController(w), timeout: s.config.WriteTimeout}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // nginx would keep messages until a buffer is full
	confirmed := confirm(connection)
	if t.send([]byte(": connected\n\n")) {
		t.control.SetReadDeadline(time.Time{}) // a body has arrived before the header was sent
		s.stream(r.Context(), t, connection, confirmed)
	}
}

// stream passes messages on until the stream ends.
func (s *Server) stream(ctx context.Context, t *stream, connection protocol.Connection, confirmed func()) {
	keepAlive := time.NewTicker(s.config.KeepAlive)
	defer keepAlive.Stop()
	var frame []byte
	for {
		select {
		case m, ok := <-connection.Messages():
			if !ok {
				return
			}
			frame = append(frame[:0], "data: "...)
			frame = protocol.AppendMessage(frame, &m, "")
			frame = append(frame, "\n\n"...)
			if !t.send(frame) {
				return
			}
			confirmed()
			if cap(frame) > bufferKept {
				frame = nil
			}
		case <-keepAlive.C:
			if !t.send([]byte(": keep-alive\n\n")) {
				return
			}
		case <-ctx.Done():
			return
		case <-s.closing:
			return
		}
	}
}

// confirm returns the function that must be called for each message that was sent. A
// message that was not sent goes to another worker, or to the next connection of the
// process.
func confirm(connection protocol.Connection) func() {
	if c, ok := connection.(protocol.Confirmer); ok {
		c.Confirm()
		return c.Confirmed
	}
	return func() {}
}

// A stream writes frames. A client that does not read blocks it until the deadline.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
}

func (t *stream) send(frame []byte) bool {
	if t.control.SetWriteDeadline(time.Now().Add(t.timeout)) != nil {
		return false
	}
	_, err := t.w.Write(frame)
	return err == nil && t.control.Flush() == nil
}

// limitBuffer bounds the messages that the kernel holds for a worker that does not read:
// they are lost with the connection.
func limitBuffer(c net.Conn) {
	if t, ok := c.(interface{ SetWriteBuffer(int) error }); ok {
		t.SetWriteBuffer(streamBuffer)
	}
}

// checkName checks a name of a path, which may be any bytes.
func checkName(field, name string) string {
	if err := protocol.Check(protocol.PromiseGet{ID: name}); err != nil {
		var e *protocol.Error
		if errors.As(err, &e) {
			return "the " + field + " " + e.Problem + ". "
		}
	}
	return ""
}
