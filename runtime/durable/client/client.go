package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// Options are the settings of a [Client]. The zero value is fine for a server on this
// computer without a token.
type Options struct {
	// Token is the bearer token. "": none.
	Token string
	// TLS has the certificates, for an https URL. nil: those of the system, and no
	// certificate of the client.
	TLS *tls.Config
	// Certificates returns the configuration of TLS, in place of TLS. The client calls it after
	// errors and every ten seconds. If it returns another configuration, new requests use new
	// connections with it. See certs.Client, which reads files. nil: TLS.
	Certificates func() *tls.Config
	// Timeout ends an operation. 0: TimeoutDefault.
	Timeout time.Duration
	// Silence is the time without a byte after which a stream counts as broken. It must be
	// longer than the server's time between comments. 0: SilenceDefault.
	Silence time.Duration
	// ResponseMax is the number of bytes of a response or message that are read.
	// 0: ResponseMaxDefault.
	ResponseMax int
	// ConnectionsMax is the number of TCP connections that are kept for later operations.
	// 0: ConnectionsMaxDefault.
	ConnectionsMax int
	// Forwarded says that the client is a node of a group that passes requests of its own
	// clients on. The server carries them out itself or refuses them, see
	// server.Config.Local.
	Forwarded bool
	// Events is called when a [Connection] is connected or disconnected. It must return
	// soon, because the connection waits for it. nil: events are ignored.
	Events func(Event)
}

// Defaults of options.
const (
	TimeoutDefault = 30 * time.Second
	SilenceDefault = 45 * time.Second // three comments of the server
	// ResponseMaxDefault is enough for a task with preloaded promises, and bounds the memory
	// that a server can make its client use.
	ResponseMaxDefault    = 64 << 20
	ConnectionsMaxDefault = 256

	dialTimeout      = 5 * time.Second
	handshakeTimeout = 10 * time.Second
	idleTimeout      = 90 * time.Second // less than the server's, so that the server does not close a connection in use
	headerBytesMax   = 64 << 10
	bufferKept       = 64 << 10
)

// An Event is a change of a [Connection].
type Event struct {
	Group, PID string
	// Connected says that messages arrive from now on. Messages that were sent before may
	// be lost.
	Connected bool
	// Attempt counts the attempts to connect since the last stream, from 1.
	Attempt int
	// Err is the reason for which the stream ended or did not begin.
	Err error
}

// A Client sends operations to a server. Its methods may be called from several
// goroutines.
type Client struct {
	options Options
	url     *url.URL
	post    *url.URL
	// A transport follows no redirects and does less for each request than an http.Client.
	transport      http.RoundTripper
	posts, streams http.Header // of the requests, which share them
	prefix         string      // of the corrIds
	count          atomic.Uint64

	mu          sync.Mutex
	closed      bool
	connections map[*Connection]struct{}
}

var _ protocol.Backend = (*Client)(nil)

// New makes a client of the server at a URL such as http://127.0.0.1:8001. It does not
// connect yet.
func New(server string, options Options) (*Client, error) {
	u, err := url.Parse(server)
	switch {
	case err != nil:
		return nil, fmt.Errorf("client: the URL of a server is malformed: %w", errors.Unwrap(err)) // the error of Parse has the whole text
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, fmt.Errorf("client: the URL of a server must begin with http:// or https://, got %q", protocol.Redacted(server))
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("client: the URL of a server has no user, query or fragment, got %q", protocol.Redacted(server))
	}
	if err := errors.Join(
		positive("Timeout", &options.Timeout, TimeoutDefault),
		positive("Silence", &options.Silence, SilenceDefault),
		positive("ResponseMax", &options.ResponseMax, ResponseMaxDefault),
		positive("ConnectionsMax", &options.ConnectionsMax, ConnectionsMaxDefault),
	); err != nil {
		return nil, err
	}
	c := &Client{
		options: options, url: u, post: u.JoinPath("/"), transport: newTransport(&options), connections: map[*Connection]struct{}{},
		posts:   http.Header{"Content-Type": {"application/json"}},
		streams: http.Header{"Accept": {"text/event-stream"}},
	}
	for _, header := range []http.Header{c.posts, c.streams} {
		if options.Token != "" {
			header.Set("Authorization", "Bearer "+options.Token)
		}
		if options.Forwarded {
			header.Set(protocol.HeaderForwarded, "true")
		}
	}
	var random [8]byte
	rand.Read(random[:])
	c.prefix = hex.EncodeToString(random[:]) + "-"
	return c, nil
}

func positive[T ~int | ~int64](name string, value *T, usual T) error {
	if *value == 0 {
		*value = usual
	}
	if *value < 0 {
		return fmt.Errorf("client: Options.%s must be positive, got %v", name, *value)
	}
	return nil
}

func newTransport(o *Options) http.RoundTripper {
	if o.Certificates != nil {
		return &reloading{options: o}
	}
	return transport(o, o.TLS)
}

func transport(o *Options, config *tls.Config) *http.Transport {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	t := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSHandshakeTimeout:    handshakeTimeout,
		MaxIdleConns:           o.ConnectionsMax,
		MaxIdleConnsPerHost:    o.ConnectionsMax,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: headerBytesMax,
		DisableCompression:     true, // a small compressed response could be huge
		Protocols:              &protocols,
	}
	if config != nil {
		t.TLSClientConfig = config.Clone()
	}
	return t
}

// Close ends all connections. Operations that are under way are not ended.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	open := c.connections
	c.connections = nil
	c.mu.Unlock()
	for connection := range open {
		connection.Close()
	}
	if t, ok := c.transport.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
	return nil
}

// Do sends an operation and returns the answer of the server. An operation that no server
// would accept is refused with status 400 without being sent.
func (c *Client) Do(ctx context.Context, op protocol.Operation) (protocol.Result, error) {
	if err := protocol.Check(op); err != nil {
		return protocol.Result{Status: protocol.BadRequest, Error: err.Error()}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	corrID := c.prefix + strconv.FormatUint(c.count.Add(1), 10)
	r := protocol.Request{Head: protocol.Head{CorrID: corrID, DebugTime: timeOf(ctx)}, Op: op, ActionCorrID: corrID}
	res, err := c.send(ctx, &r)
	if err != nil {
		return protocol.Result{}, fmt.Errorf("client: %s: %w", op.Kind(), err)
	}
	return res, nil
}

func (c *Client) send(ctx context.Context, r *protocol.Request) (protocol.Result, error) {
	text := protocol.AppendRequest(nil, r) // the transport may still read it after an error
	body := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
	request := &http.Request{
		Method: http.MethodPost, URL: c.post, Header: c.posts, ContentLength: int64(len(text)),
		GetBody: body, // for a second attempt if the server has closed an idle connection
	}
	request.Body, _ = body()
	response, err := c.transport.RoundTrip(request.WithContext(ctx))
	if err != nil {
		return protocol.Result{}, err
	}
	defer response.Body.Close()
	b := buffers.Get().(*bytes.Buffer)
	defer free(b)
	if _, err := b.ReadFrom(io.LimitReader(response.Body, int64(c.options.ResponseMax)+1)); err != nil {
		return protocol.Result{}, err
	}
	if b.Len() > c.options.ResponseMax {
		return protocol.Result{}, fmt.Errorf("the response is longer than %d bytes", c.options.ResponseMax)
	}
	res, err := protocol.DecodeResponse(b.Bytes(), r)
	switch {
	case err != nil:
		return protocol.Result{}, fmt.Errorf("HTTP status %d: %w", response.StatusCode, err)
	case res.Status != response.StatusCode:
		return protocol.Result{}, fmt.Errorf("HTTP status %d does not match status %d of the response", response.StatusCode, res.Status)
	}
	return res, nil
}

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func free(b *bytes.Buffer) {
	if b.Cap() <= bufferKept {
		b.Reset()
		buffers.Put(b)
	}
}

type timeKey struct{}

// WithTime returns a context whose operations ask the server to act as if it were the
// given time, in milliseconds since 1970. A server that was not started with --debug
// refuses them.
func WithTime(ctx context.Context, ms int64) context.Context {
	return context.WithValue(ctx, timeKey{}, &ms)
}

func timeOf(ctx context.Context) *int64 {
	ms, _ := ctx.Value(timeKey{}).(*int64)
	return ms
}

// pollURL returns the URL of the stream for a process. The names may contain any
// character.
func (c *Client) pollURL(group, pid string) *url.URL {
	u := *c.url
	base := strings.TrimSuffix(u.EscapedPath(), "/") + "/poll/"
	u.RawPath = base + url.PathEscape(group) + "/" + url.PathEscape(pid)
	u.Path, _ = url.PathUnescape(u.RawPath)
	return &u
}
