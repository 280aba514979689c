package cluster

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/topogen/topogen/runtime/cluster/session"
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/piper/border"
	"github.com/topogen/topogen/runtime/transport/grpc"
)

// Environment variables of clients. TOPOGEN_NODES, TOPOGEN_TLS_CERT, TOPOGEN_TLS_KEY and
// TOPOGEN_TLS_CA are those of nodes.
const (
	VariableClientWait  = "TOPOGEN_CLIENT_WAIT"  // how long NewClient waits for the first node; a duration
	VariableClientRetry = "TOPOGEN_CLIENT_RETRY" // how long messages wait for a node that cannot be reached; a duration
)

const (
	clientWait  = 30 * time.Second
	clientRetry = 60 * time.Second

	// clientWindow is how long a node remembers a client that is not connected. A client
	// that comes back within this time gets no message handled twice.
	clientWindow = 10 * time.Minute

	// clientRetryMax is less than clientWindow, because the node may notice a minute
	// earlier than the client that the connection is lost. So a client never sends a
	// message again to a node that has forgotten it.
	clientRetryMax = clientWindow - time.Minute
)

// ClientConfig configures a client: a process outside the cluster that sends messages to
// it. Zero fields have the values of the environment, or else of the topology file.
type ClientConfig struct {
	// Addresses are host:port of some nodes. The client asks them one after the other for
	// the other nodes. Default: TOPOGEN_NODES, or the first members in the topology file.
	Addresses []string

	// Files with the certificate of a client or an operator, its key, and the authority.
	// Default: TOPOGEN_TLS_CERT, TOPOGEN_TLS_KEY and TOPOGEN_TLS_CA.
	TLSCert, TLSKey, TLSCA string

	// Wait is how long NewClient waits until a node answers. Default: TOPOGEN_CLIENT_WAIT,
	// or 30s.
	Wait time.Duration

	// Retry is how long messages wait for a node that cannot be reached. Then they are
	// dropped and counted, and an Ask fails with ErrUnreachable. At most 9m. Default:
	// TOPOGEN_CLIENT_RETRY, or 60s.
	Retry time.Duration

	// Dial opens a connection to host:port, for example through a proxy. Default: TCP, and
	// without TLS only to this host, unless the topology file or TOPOGEN_INSECURE says
	// insecure.
	Dial func(ctx context.Context, address string) (net.Conn, error)

	Logger *slog.Logger // default slog.Default()
}

// AsClient is the option that makes the process a client. Generated code uses it.
func AsClient(c ClientConfig) piper.Option { return piper.Client(&c) }

// openClient makes this process a client of a cluster.
func openClient(c Config, client *ClientConfig, o piper.NodeSettings) (*Node, error) {
	name := rand.Text()
	s := settings{Config: c, node: clientPrefix + name, log: cmp.Or(client.Logger, o.Logger)}
	s.TLSCert = cmp.Or(client.TLSCert, os.Getenv(VariableCert), s.TLSCert)
	s.TLSKey = cmp.Or(client.TLSKey, os.Getenv(VariableKey), s.TLSKey)
	s.TLSCA = cmp.Or(client.TLSCA, os.Getenv(VariableCA), s.TLSCA)
	s.Retry.Min = cmp.Or(s.Retry.Min, session.RetryMinDefault)
	s.Retry.Max = cmp.Or(s.Retry.Max, session.RetryMaxDefault)
	wait, err := durationOf("Wait", client.Wait, VariableClientWait, clientWait)
	if err == nil {
		s.Retry.Timeout, err = durationOf("Retry", client.Retry, VariableClientRetry, clientRetry)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("client: %w", err)
	case s.Retry.Timeout > clientRetryMax:
		return nil, fmt.Errorf("client: Retry (%s) must be at most %v, got %v: the nodes remember a client for %v",
			VariableClientRetry, clientRetryMax, s.Retry.Timeout, clientWindow)
	}
	if err := s.checkTLS(); err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	if err := s.readInsecure(); err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	addresses := client.Addresses
	if text := os.Getenv(VariableNodes); len(addresses) == 0 && text != "" {
		if s.Nodes, err = readNodes(text); err != nil {
			return nil, fmt.Errorf("client: %w", err)
		}
	}
	if len(addresses) == 0 {
		addresses = slices.Sorted(maps.Values(s.Nodes))
	}
	n := newProcess(s)
	t := &clientTransport{node: n, name: name, streams: map[string]*outStream{}, stale: make(chan struct{}, 1), stopped: make(chan struct{})}
	if t.dial = client.Dial; t.dial == nil {
		t.dial = dialTCP
		if s.TLSCert == "" && !s.Insecure {
			t.dial = grpc.LoopbackDialer()
		}
	}
	if s.TLSCert != "" {
		t.tls = &grpc.TLS{Cert: s.TLSCert, Key: s.TLSKey, CA: s.TLSCA}
	}
	n.client = &clientPart{transport: t, addresses: addresses, wait: wait, began: make(chan struct{})}
	own := newClientCore(&n.settings.Config, s.node, uint64(n.boot), newRand(), n.log)
	own.stale, own.emit = t.isStale, n.sendFrame
	n.core = own.core
	n.transport, n.close = t, t.Close
	return n, nil
}

func dialTCP(ctx context.Context, address string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", address)
}

// durationOf returns a setting, the value of an environment variable, or a default.
func durationOf(name string, set time.Duration, variable string, byDefault time.Duration) (time.Duration, error) {
	if set < 0 {
		return 0, fmt.Errorf("%s must not be negative, got %v", name, set)
	}
	if text := os.Getenv(variable); set == 0 && text != "" {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return 0, fmt.Errorf("%s must be a duration such as 30s, got %q", variable, text)
		}
		return d, nil
	}
	return cmp.Or(set, byDefault), nil
}

// Client runs the topology of a client, which has no instances. Generated code makes it.
// Its methods may be called from any goroutine.
type Client struct {
	node   *Node
	cancel context.CancelFunc
	done   chan struct{} // closed when Run has returned
	err    error         // of Run
}

// StartClient connects a client. It returns when a node of the cluster has answered, or an
// error if none has answered in time, or if a node refuses the client. run is the method Run
// of the pool.
func StartClient(n *Node, run func(context.Context) error) (*Client, error) {
	ctx, cancel := context.WithCancel(context.Background())
	c := &Client{node: n, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.err = run(ctx)
	}()
	select {
	case <-n.client.began:
		return c, nil
	case <-c.done:
		cancel()
		return nil, cmp.Or(c.err, errClientEnded)
	}
}

// errClientEnded is returned if a client has ended before a node has answered.
var errClientEnded = errors.New("cluster: client: it has ended")

// Close refuses further messages, and waits until all accepted ones are handled or dropped,
// at most for the drain timeout of the topology. It returns an error if messages remain, or
// if the client has failed. It may be called several times.
func (c *Client) Close() error {
	c.cancel()
	<-c.done
	return c.err
}

// View returns what the client knows about the cluster.
func (c *Client) View() *View { return c.node.View() }

// clientPart is the part of a Node that is a client.
type clientPart struct {
	transport *clientTransport
	addresses []string
	wait      time.Duration
	began     chan struct{} // closed when a node has answered
	refreshed sync.WaitGroup
}

// begin finds the nodes of the cluster. None of the instances is here.
func (c *clientPart) begin(ctx context.Context, n *Node, p *border.Border) error {
	replica, err := c.find(ctx, n.settings.Plan)
	if err != nil {
		return err
	}
	where, err := newLookup(&n.settings, replica)
	if err != nil {
		return err
	}
	if err := p.Place(func(int, int) bool { return false }); err != nil {
		return err
	}
	n.where.Store(where)
	n.core.begin(p, where)
	n.start()
	n.opened.Store(&opened{lookup: where, pool: p})
	c.transport.follow(where.nodes())
	c.refreshed.Go(func() { c.refresh(n, where) })
	close(c.began)
	return nil
}
