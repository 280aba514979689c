package server

import (
	"context"
	"errors"
	"log"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/transport/certs"
)

// A Server answers requests until it is closed.
type Server struct {
	config  Config
	access  access
	metrics *metrics
	backend protocol.Backend

	listener *listener
	scrapes  net.Listener // of the metrics; nil if there are none
	http     *http.Server
	scraped  *http.Server
	unused   unused // connections

	slots     chan struct{} // one for each request that is carried out
	clients   bodies        // of requests that have access
	strangers bodies        // of requests that may have a token in their head
	responses atomic.Int64  // bytes of the responses that were made and not read yet
	slow      slow          // responses that are being read
	reads     sync.Mutex    // results of reads are admitted one after the other

	closing   chan struct{} // closed by Close: streams end
	closeOnce sync.Once
	serving   sync.WaitGroup
	failed    chan error // has room for the error of each listener
}

// Listen opens the sockets and begins to answer requests.
func Listen(config Config) (*Server, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	socket, err := config.listen(config.Listen)
	if err != nil {
		return nil, err
	}
	var scrapes net.Listener
	if config.MetricsListen != "" {
		if scrapes, err = config.listen(config.MetricsListen); err != nil {
			return nil, errors.Join(err, socket.Close())
		}
	}
	return start(config, socket, scrapes), nil
}

// start answers the requests of two listeners. That of the metrics may be nil.
func start(config Config, requests, scrapes net.Listener) *Server {
	s := &Server{
		config: config, backend: config.Backend, access: newAccess(&config, requests.Addr().(*net.TCPAddr)),
		slots: make(chan struct{}, config.RequestsMax), closing: make(chan struct{}), failed: make(chan error, 2),
		clients:   bodies{max: int64(config.BodiesMax), bodyMax: config.BodyMax, timeout: config.BodyTimeout, slow: slow{after: slowBody}},
		strangers: bodies{max: strangersMax, bodyMax: min(config.BodyMax, strangerMax), timeout: min(config.BodyTimeout, config.HeaderTimeout), slow: slow{after: slowBody}},
		slow:      slow{after: slowResponse},
	}
	s.metrics = newMetrics(s)
	s.listener = newListener(requests, config.ConnectionsMax, &s.metrics.refused)
	s.http, s.scraped = s.newHTTP(s.serve), s.newHTTP(s.serveMetrics)
	if scrapes != nil {
		s.scrapes = newListener(scrapes, scrapesMax, &s.metrics.refused)
		s.run(s.scraped, s.scrapes)
	}
	s.run(s.http, s.listener)
	return s
}

const scrapesMax = 256 // connections of programs that read the metrics; strangers that connect as fast as they can leave time for a handshake

func (s *Server) newHTTP(handle http.HandlerFunc) *http.Server {
	var protocols http.Protocols
	protocols.SetHTTP1(true) // HTTP/2 has streams, which the limit of connections does not count
	return &http.Server{
		Handler:           s.guard(handle),
		ReadHeaderTimeout: s.config.HeaderTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    headerBytesMax,
		Protocols:         &protocols,
		// net/http would answer OPTIONS * itself, without a token, and wait for its body.
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     log.New(discard{}, "", 0), // a line for each broken connection says nothing
		ConnState:                    s.unused.note,
		ConnContext:                  func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
	}
}

type connKey struct{}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }

func (s *Server) run(h *http.Server, l net.Listener) {
	if s.config.TLS != nil {
		config := s.config.TLS.Clone()
		config.NextProtos = []string{"http/1.1"}
		l = certs.Strangers.Listener(l, config)
	}
	s.serving.Go(func() {
		if err := h.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.config.Logger.Error("durable: the server cannot accept connections", "error", err)
			s.failed <- err
		}
	})
}

// Address is the address of the protocol, with the port that the system has chosen if
// the configured one is 0.
func (s *Server) Address() string { return s.listener.Addr().String() }

// MetricsAddress is the address of the metrics, or "".
func (s *Server) MetricsAddress() string {
	if s.scrapes == nil {
		return ""
	}
	return s.scrapes.Addr().String()
}

// URL is the URL of the protocol.
func (s *Server) URL() string {
	if s.config.TLS != nil {
		return "https://" + s.Address()
	}
	return "http://" + s.Address()
}

// Failed receives the error if a socket of the server fails. The program should then
// close the server.
func (s *Server) Failed() <-chan error { return s.failed }

// Close stops to accept connections, answers the requests whose header has arrived, and ends the
// streams of messages. It closes the other connections: a request whose header arrives later is
// not carried out, and its client sees that the connection is closed. If ctx ends first, Close
// closes the connections that are left and returns the error of ctx. It does not close the
// backend.
func (s *Server) Close(ctx context.Context) error {
	s.closeOnce.Do(func() { close(s.closing) })
	errs := make(chan error, 2)
	for _, h := range []*http.Server{s.http, s.scraped} {
		go func() { errs <- shutdown(ctx, h) }()
	}
	s.serving.Wait() // both servers accept no connection after this
	s.unused.close()
	return errors.Join(<-errs, <-errs)
}

func shutdown(ctx context.Context, h *http.Server) error {
	err := h.Shutdown(ctx)
	if err != nil {
		h.Close()
	}
	return err
}

// backendOf returns the backend that carries out a request.
func (s *Server) backendOf(r *http.Request) protocol.Backend {
	if s.config.Local != nil && r.Header.Get(protocol.HeaderForwarded) == "true" {
		return s.config.Local
	}
	return s.backend
}

func (s *Server) logger() *slog.Logger { return s.config.Logger }
