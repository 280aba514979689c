package server

import (
	"errors"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// guard answers requests that must not reach a handler, and survives a handler that
// panics.
func (s *Server) guard(handle http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		tracked := &response{ResponseWriter: w, conn: connOf(r)}
		defer s.recover(tracked, r)
		w.Header()["X-Content-Type-Options"] = nosniff
		if tracked.conn != nil {
			tracked.conn.silent.Store(false)
		}
		// A deadline of the request before would end this one. net/http reads the body of a
		// request whose handler does not, also that of a client without a token.
		control := http.NewResponseController(w)
		control.SetReadDeadline(time.Now().Add(s.config.BodyTimeout))
		control.SetWriteDeadline(time.Now().Add(s.config.BodyTimeout + s.config.WriteTimeout))
		if why := s.access.foreign(r); why != "" {
			refuse(tracked, protocol.Forbidden, why)
			return
		}
		if s.access.allow(tracked, r) {
			return
		}
		handle(tracked, r)
	}
}

// A response remembers whether it was begun. A refusal ends the connection of a stranger, so that
// strangers get one for a connection.
type response struct {
	http.ResponseWriter
	conn  *conn // nil: of another listener
	begun bool
}

func (w *response) WriteHeader(status int) {
	w.begun = true
	if status >= 400 && w.conn != nil && !w.conn.known {
		w.Header().Set("Connection", "close")
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *response) Write(b []byte) (int, error) {
	w.begun = true
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (s *Server) recover(w *response, r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if err, ok := p.(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
		s.metrics.panics.Add(1)
		s.logger().Error("durable: a request panicked; this is an error in the program",
			"method", r.Method, "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
		if !w.begun {
			refuse(w, protocol.Internal, "the server failed to answer the request")
			return
		}
	}
	panic(http.ErrAbortHandler) // closes the connection in the middle of the response
}

// serve finds the handler of a request. A path is used as it was sent: a redirect to a
// cleaned path would answer a POST with a page of HTML.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	path := r.URL.EscapedPath()
	switch {
	case path == "/" && r.Method == http.MethodPost:
		s.post(w, r)
	case path == "/":
		w.Header().Set("Allow", "POST")
		refuse(w, http.StatusMethodNotAllowed, "send requests with POST")
	case !s.granted(r, ""):
		unauthorized(w)
	case strings.HasPrefix(path, "/poll/"):
		s.servePoll(w, r, path[len("/poll/"):])
	case path == "/backup":
		s.serveBackup(w, r)
	case path == "/health":
		s.serveHealth(w, r)
	case path == "/ready":
		s.serveReady(w, r)
	case legacy(path):
		refuse(w, protocol.NotFound, "this path belongs to an older protocol: send requests of version "+protocol.Version+" to /")
	default:
		refuse(w, protocol.NotFound, "there is nothing at this path")
	}
}

// legacy reports whether a path belongs to the protocol before version 2026-04-01.
func legacy(path string) bool {
	for _, prefix := range []string{"/promises", "/tasks", "/schedules"} {
		if strings.HasPrefix(path, prefix) {
			return true
		}
	}
	return false
}

func (s *Server) servePoll(w http.ResponseWriter, r *http.Request, names string) {
	before, after, ok := strings.Cut(names, "/")
	group, err1 := url.PathUnescape(before)
	pid, err2 := url.PathUnescape(after)
	switch {
	case r.Method != http.MethodGet:
		w.Header().Set("Allow", "GET")
		refuse(w, http.StatusMethodNotAllowed, "receive messages with GET")
	case !ok || strings.Contains(after, "/") || err1 != nil || err2 != nil:
		refuse(w, protocol.NotFound, "the path must be /poll/{group}/{pid}")
	default:
		s.poll(w, r, group, pid)
	}
}

func (s *Server) serveHealth(w http.ResponseWriter, r *http.Request) {
	if getOnly(w, r) {
		answer(w, http.StatusOK, []byte("{\"status\":\"ok\"}\n"))
	}
}

// serveReady asks the backend for a promise, whether it exists or not.
func (s *Server) serveReady(w http.ResponseWriter, r *http.Request) {
	if !getOnly(w, r) {
		return
	}
	select {
	case <-s.closing:
		refuse(w, protocol.Unavailable, "the server is shutting down")
		return
	default:
	}
	res, err := s.backend.Do(r.Context(), protocol.PromiseGet{ID: "ready"})
	switch {
	case err != nil:
		refuse(w, protocol.Unavailable, err.Error())
	case res.Status != protocol.OK && res.Status != protocol.NotFound:
		refuse(w, protocol.Unavailable, res.Error)
	default:
		answer(w, http.StatusOK, []byte("{\"status\":\"ready\"}\n"))
	}
}

func getOnly(w http.ResponseWriter, r *http.Request) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return true
	}
	w.Header().Set("Allow", "GET")
	refuse(w, http.StatusMethodNotAllowed, "use GET")
	return false
}

// challenge sets the headers of a response to a request without access. Its connection is closed,
// so that it needs no place.
func challenge(w http.ResponseWriter) {
	w.Header().Set("WWW-Authenticate", "Bearer")
	w.Header().Set("Connection", "close")
}

func unauthorized(w http.ResponseWriter) {
	challenge(w)
	refuse(w, protocol.Unauthorized, "a valid token is needed")
}

// refuse answers a request that is not a request of the protocol, or that cannot be read
// as one.
func refuse(w http.ResponseWriter, status int, why string) {
	r := protocol.Request{}
	answer(w, status, protocol.AppendResponse(nil, &r, &protocol.Result{Status: status, Error: why}))
}

func answer(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h["Content-Type"] = jsonType
	if len(body) > bufferedMax {
		h["Content-Length"] = []string{strconv.Itoa(len(body))}
	}
	w.WriteHeader(status)
	w.Write(body)
}

// bufferedMax is the length up to which net/http sets the Content-Length, with less work.
const bufferedMax = 2048

// Values of headers that every response has. net/http does not change them.
var (
	jsonType = []string{"application/json"}
	nosniff  = []string{"nosniff"}
)
