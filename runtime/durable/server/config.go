package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// Config has the settings of a [Server]. Only Backend is required.
type Config struct {
	// Backend carries out the operations. The server does not close it.
	Backend protocol.Backend
	// Local carries out requests that another node of the group has forwarded, so that two
	// nodes do not forward a request to each other. nil: Backend.
	Local protocol.Backend
	// Listen is the address of the protocol. "": AddressDefault.
	Listen string
	// MetricsListen is the address of the metrics, such as 127.0.0.1:9090, the
	// port of the original server. "": there are none.
	MetricsListen string

	// Tokens are the bearer tokens that give access to every endpoint. There may be
	// several, so that clients can move from an old one to a new one. nil: no token is
	// needed.
	Tokens []string
	// TLS makes the server speak TLS. With ClientAuth RequireAndVerifyClientCert, only
	// clients with a certificate have access. nil: plain HTTP.
	TLS *tls.Config
	// Insecure allows an address outside of this computer without tokens and without client
	// certificates: everyone who reaches it may read, settle and delete all promises.
	Insecure bool
	// Debug allows the operations debug.* and resonate:debug_time. The backend must allow
	// them too.
	Debug bool
	// Origins are the web pages that may use the server from a browser, such as
	// https://app.example.com. A request of any other page is refused.
	Origins []string
	// Hosts are further names of this server. A server without tokens and client
	// certificates answers only requests to localhost, to an IP address and to these names,
	// because the owner of any other name could let it point here, and so reach the server
	// from a web page. With Insecure, this holds for a loopback address only.
	Hosts []string

	// Logger receives failures. nil: slog.Default.
	Logger *slog.Logger

	// BodyMax is the length of a request in bytes. 0: protocol.MaxBody.
	BodyMax int
	// BodiesMax is the length of all requests that are being read or carried out, in bytes.
	// Further ones are refused with status 429. Requests without a token in their header have
	// a memory of their own, of 4 MiB, until the token in their head is known. 0: BodiesMaxDefault.
	BodiesMax int
	// ResponsesMax is the length of all responses that clients have not read yet, in bytes.
	// Further requests are refused with status 429. 0: ResponsesMaxDefault.
	ResponsesMax int
	// ConnectionsMax is the number of TCP connections. A further one takes the place of the
	// oldest connection without a request that had access. If all had one, it is closed at
	// once. 0: ConnectionsMaxDefault.
	ConnectionsMax int
	// RequestsMax is the number of requests that are carried out at a time. Further ones are
	// refused with status 429. 0: RequestsMaxDefault.
	RequestsMax int
	// HeaderTimeout is the time to receive the header of a request, and for the handshake of
	// TLS. 0: HeaderTimeoutDefault.
	HeaderTimeout time.Duration
	// BodyTimeout is the time to receive the body of a request. 0: BodyTimeoutDefault.
	BodyTimeout time.Duration
	// WriteTimeout is the time to send a response, or a message to a worker. A worker that
	// does not read is disconnected after it. 0: WriteTimeoutDefault.
	WriteTimeout time.Duration
	// BackupStall is the time after which a backup ends whose reader takes nothing. A reader must
	// also take 256 KiB per second on average. 0: BackupStallDefault.
	BackupStall time.Duration
	// KeepAlive is the time between two comments on a stream without messages. It tells
	// proxies that the stream is in use. 0: KeepAliveDefault.
	KeepAlive time.Duration
}

// Defaults and limits.
const (
	AddressDefault = "127.0.0.1:8001" // the port of the original server
	// BodiesMaxDefault lets 16 requests of the largest size be read at a time.
	BodiesMaxDefault = 16 * protocol.MaxBody
	// ResponsesMaxDefault lets 32 promises with the largest parameter and the largest value be
	// sent at a time. A client that reads needs this memory only for milliseconds.
	ResponsesMaxDefault = 64 * protocol.MaxBody
	// ConnectionsMaxDefault is above the sum of the workers' streams (1,000) and of their
	// requests, and each costs about 20 KiB.
	ConnectionsMaxDefault = 4096
	// RequestsMaxDefault is above the number of operations in a commit of the engine, so
	// that one commit can be filled while another one is synced.
	RequestsMaxDefault = 2048
	// The timeouts end connections of clients that send or read a few bytes at a time.
	HeaderTimeoutDefault = 5 * time.Second
	BodyTimeoutDefault   = 10 * time.Second
	WriteTimeoutDefault  = 10 * time.Second
	KeepAliveDefault     = 15 * time.Second
	BackupStallDefault   = 30 * time.Second // longer than the sync of a slow disk of the reader

	// strangerMax is the length of a request whose token may be in its head. Most requests fit,
	// and clients send the token in the header.
	strangerMax  = 64 << 10
	strangersMax = 4 << 20 // the length of all of them: 63 of the largest size

	idleTimeout    = 2 * time.Minute // a client that is idle for longer connects again
	headerBytesMax = 16 << 10        // a token has up to 8 KiB
	streamBuffer   = 64 << 10        // of the kernel, for messages that a worker has not read
)

func (c Config) withDefaults() (Config, error) {
	if c.Backend == nil {
		return c, errors.New("server: Config.Backend is missing")
	}
	if slices.Contains(c.Tokens, "") {
		return c, errors.New("server: a token is empty")
	}
	for _, token := range c.Tokens {
		if len(token) > protocol.MaxToken {
			return c, fmt.Errorf("server: a token is longer than %d bytes", protocol.MaxToken)
		}
	}
	if c.Listen == "" {
		c.Listen = AddressDefault
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c, errors.Join(
		positive("BodyMax", &c.BodyMax, protocol.MaxBody),
		positive("BodiesMax", &c.BodiesMax, BodiesMaxDefault),
		positive("ResponsesMax", &c.ResponsesMax, ResponsesMaxDefault),
		positive("ConnectionsMax", &c.ConnectionsMax, ConnectionsMaxDefault),
		positive("RequestsMax", &c.RequestsMax, RequestsMaxDefault),
		positive("HeaderTimeout", &c.HeaderTimeout, HeaderTimeoutDefault),
		positive("BodyTimeout", &c.BodyTimeout, BodyTimeoutDefault),
		positive("WriteTimeout", &c.WriteTimeout, WriteTimeoutDefault),
		positive("KeepAlive", &c.KeepAlive, KeepAliveDefault),
		positive("BackupStall", &c.BackupStall, BackupStallDefault),
	)
}

func positive[T ~int | ~int64](name string, value *T, usual T) error {
	if *value == 0 {
		*value = usual
	}
	if *value < 0 {
		return fmt.Errorf("server: Config.%s must be positive, got %v", name, *value)
	}
	return nil
}

// authenticates reports whether clients must show that they may use the server.
func (c *Config) authenticates() bool {
	return len(c.Tokens) > 0 || c.TLS != nil && c.TLS.ClientAuth == tls.RequireAndVerifyClientCert
}

// listen opens a socket. It refuses an address that other computers can reach if clients
// need neither a token nor a certificate.
func (c *Config) listen(address string) (*net.TCPListener, error) {
	resolved, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	if !resolved.IP.IsLoopback() && !c.authenticates() && !c.Insecure {
		return nil, fmt.Errorf("server: other computers can reach %s: set a token or require client certificates, or allow access without them (insecure)", address)
	}
	l, err := net.ListenTCP("tcp", resolved)
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	return l, nil
}
