package grpc

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	gogrpc "google.golang.org/grpc"

	"github.com/topogen/topogen/runtime/transport"
	"github.com/topogen/topogen/runtime/transport/certs"
)

// Transport connects a node to the others. It implements [transport.Transport].
type Transport struct {
	config       Config
	address      net.Addr
	advertised   string         // the address that other nodes get
	server       *gogrpc.Server // for nodes, and without TLS for everyone
	guestServer  *gogrpc.Server // for operators and clients; nil without TLS
	guests       *guests        // its listener
	connections  *connections
	certificates *certificates // nil without TLS
	logLimit     *logLimiter   // about peers
	strangers    *logLimiter   // about processes without a valid certificate
	identified   *logLimiter   // about processes with a valid certificate that are refused
	handlers     transport.Handlers
	unattributed transport.Counters // events that belong to no known peer
	assembling   budget
	dialing      turns // attempts to connect

	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	running sync.WaitGroup // all goroutines of the transport

	mu      sync.RWMutex
	closed  bool
	peers   map[string]*peer
	removed transport.Traffic // of forgotten peers
}

var _ transport.Transport = (*Transport)(nil)

// peer is the state for another node. It exists as long as messages are sent to the
// node or come from it.
type peer struct {
	name  string
	count transport.Counters
	link  *link // nil: no address
	session
}

// Listen starts to listen, and to connect to the peers. An error means that the
// configuration, the certificates or the address are not valid.
func Listen(c Config) (*Transport, error) {
	t, err := listen(c)
	if err != nil {
		return nil, fmt.Errorf("transport: %w", err)
	}
	return t, nil
}

func listen(c Config) (*Transport, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	t := &Transport{config: c, peers: make(map[string]*peer), dialing: turns{most: dialingMax}}
	t.limitLogs()
	t.assembling.give(c.ReassemblyBytesMax)
	if c.TLS != nil {
		want := certs.ID{TrustDomain: c.TrustDomain, Topology: c.Topology, Node: c.Node}
		var err error
		if t.certificates, err = loadCertificates(*c.TLS, want, c.Logger); err != nil {
			if c.TLSNames != "" {
				err = fmt.Errorf("%w; the files are those of %s", err, c.TLSNames)
			}
			return nil, err
		}
		t.certificates.Changed = t.renew
	}
	listener, err := c.open()
	if err != nil {
		return nil, err
	}
	t.address = listener.Addr()
	t.advertised = advertised(c.Address, t.address)
	if c.Insecure {
		c.Logger.Warn("transport: no TLS: anyone who reaches this address can send messages", "address", t.address.String())
	}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	t.connections = newConnections(listener, connectionsMax, t.tooMany)
	t.newServers()
	t.serve(t.server, t.connections)
	if t.guestServer != nil {
		t.serve(t.guestServer, t.guests)
	}
	if t.certificates != nil {
		t.running.Go(t.poll)
	}
	for name, address := range c.Peers {
		t.SetPeer(name, address)
	}
	return t, nil
}

func (t *Transport) serve(server *gogrpc.Server, l net.Listener) {
	t.running.Go(func() {
		if err := server.Serve(l); err != nil && t.ctx.Err() == nil {
			t.config.Logger.Error("transport: the listener has failed: no more connections are accepted", "error", err)
		}
	})
}

func (t *Transport) limitLogs() {
	t.logLimit = newLogLimiter(t.config.Logger, "peers")
	t.strangers = newLogLimiter(t.config.Logger, "processes without a valid certificate")
	t.identified = newLogLimiter(t.config.Logger, "refused processes with a valid certificate")
}

// endLogs logs the last events.
func (t *Transport) endLogs() {
	for _, l := range []*logLimiter{t.logLimit, t.strangers, t.identified} {
		l.Report()
	}
}

func random() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:])
}

// Addr returns the address that the transport listens on.
func (t *Transport) Addr() net.Addr { return t.address }

// Send implements [transport.Transport].
func (t *Transport) Send(to string, messages ...transport.Message) {
	t.mu.RLock()
	p := t.peers[to]
	var l *link
	if p != nil {
		l = p.link
	}
	t.mu.RUnlock()
	switch {
	case l != nil:
		if dropped := l.queue.add(messages); dropped.all() > 0 {
			l.dropped(dropped)
		}
		return
	case p != nil:
		p.count.Dropped.Add(uint64(len(messages)))
	default:
		t.unattributed.Dropped.Add(uint64(len(messages)))
	}
	if t.ctx.Err() == nil {
		t.logLimit.log(slog.LevelWarn, "unknown "+to, "dropped a message to a node whose address is not known", "peer", to)
	}
}

// Handle implements [transport.Transport].
func (t *Transport) Handle(group uint64, receive func(from string, payloads [][]byte)) {
	t.handlers.Set(group, receive)
}

// SetPeer implements [transport.Transport]. If the address has changed, queued messages
// are dropped and counted. A call with this node's own name is ignored.
func (t *Transport) SetPeer(name, address string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || name == t.config.Node {
		return
	}
	p := t.peer(name)
	if p.link != nil {
		if p.link.address == address {
			return
		}
		p.link.cancel()
	}
	p.link = newLink(t, p, address)
	t.running.Go(p.link.run)
}

// PeerAddress implements [transport.Transport]. With TLS the name is verified, but the
// address is only what the node announced. A node that is dialled there must prove its
// name again.
func (t *Transport) PeerAddress(name string) (address string, ok bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	p := t.peers[name]
	if p == nil || p.advertised == "" {
		return "", false
	}
	return p.advertised, true
}

// RemovePeer implements [transport.Transport]. It does not end the peer's own stream to
// this node, because the receivers of its messages decide whether they accept them.
func (t *Transport) RemovePeer(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.peers[name]; p != nil && p.link != nil {
		p.link.cancel()
		p.link = nil
		t.forget(p)
	}
}

// peer returns the peer with a name, and adds it if needed. The lock must be held.
func (t *Transport) peer(name string) *peer {
	if t.peers[name] == nil {
		t.peers[name] = &peer{name: name}
	}
	return t.peers[name]
}

// forget removes a peer that has no link and no streams, and keeps its counts. The lock
// must be held. Events that are counted later are lost.
func (t *Transport) forget(p *peer) {
	if p.link == nil && p.process == nil && t.peers[p.name] == p {
		t.removed.Add(p.count.Traffic())
		delete(t.peers, p.name)
	}
}

// Stats implements [transport.Transport].
func (t *Transport) Stats() transport.Stats {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var s transport.Stats
	s.Traffic = t.removed
	s.Traffic.Add(t.unattributed.Traffic())
	for _, name := range slices.Sorted(maps.Keys(t.peers)) {
		p := t.peers[name]
		one := transport.PeerStats{Name: name, Traffic: p.count.Traffic()}
		if p.link != nil {
			one.Connected, one.Queued = p.link.connected.Load(), p.link.queue.count()
		}
		s.Traffic.Add(one.Traffic)
		s.Peers = append(s.Peers, one)
	}
	return s
}

// Close implements [transport.Transport]. It also waits for calls of services.
func (t *Transport) Close() error {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.cancel()
	if t.guestServer != nil {
		t.guestServer.Stop()
	}
	t.server.Stop()
	t.running.Wait()
	t.endLogs()
	return nil
}

// poll checks regularly whether the certificates have changed.
func (t *Transport) poll() {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		select {
		case <-t.ctx.Done():
			return
		case <-ticker.C:
			t.certificates.Get()
		}
	}
}

// renew renews all streams to peers.
func (t *Transport) renew() {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, p := range t.peers {
		if p.link != nil {
			p.link.certsChanged.notify()
		}
	}
}

// hello returns this node's hello to another node.
func (t *Transport) hello(to string) *hello {
	boot, entered := t.config.Identity.Own()
	return &hello{
		protocol: protocol, topology: t.config.Topology, version: t.config.Version, trustDomain: t.config.TrustDomain,
		node: t.config.Node, to: to, incarnation: boot, entered: entered, messageBytesMax: uint64(t.config.MessageBytesMax),
		address: t.advertised,
	}
}

// refuseCaller counts and logs a refused stream or call. It logs once a minute for each
// certificate and reason, whatever addresses the caller has, and whatever name it uses.
func (t *Transport) refuseCaller(ctx context.Context, reason, name string, err error) {
	id, ok := Caller(ctx)
	address := addressOf(ctx)
	if !ok {
		t.refuse(address, fmt.Sprintf("%s %.100q", reason, name), err)
		return
	}
	t.refuseID(address, &refusedID{id, reason, err})
}

func (t *Transport) refuseID(address net.Addr, r *refusedID) {
	t.unattributed.Refused.Add(1)
	t.identified.log(slog.LevelError, r.kind+" "+r.id.String(), "refused a connection", "address", address.String(), "error", r.error)
}

// refuse counts and logs a refused connection or call of an unidentified client. It
// logs once a minute for each host and reason.
func (t *Transport) refuse(address net.Addr, reason string, err error) {
	if errors.Is(err, net.ErrClosed) {
		return // this node has closed the connection, and tooMany has counted it
	}
	t.unattributed.Refused.Add(1)
	host, _, splitErr := net.SplitHostPort(address.String())
	if splitErr != nil {
		host = address.String()
	}
	if isBroken(err) {
		t.strangers.log(slog.LevelInfo, "broken "+host, "a connection has ended before the peer was identified", "address", address.String(), "error", err)
		return
	}
	t.strangers.log(slog.LevelError, "refused "+host+" "+reason, "refused a connection", "address", address.String(), "error", err)
}

// refuseTLS refuses a connection whose handshake has failed. Each kind of error is a
// reason of its own, so that the errors of a health checker do not hide those of a node on
// the same host.
func (t *Transport) refuseTLS(address net.Addr, err error) {
	if r := asRefusedID(err); r != nil {
		t.refuseID(address, r)
		return
	}
	reason := fmt.Sprintf("TLS %T", err)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("no handshake within %v", handshakeTimeout)
	}
	t.refuse(address, reason, fmt.Errorf("TLS: %w", err))
}

func (t *Transport) tooMany(address net.Addr) {
	t.unattributed.Refused.Add(1)
	t.logLimit.log(slog.LevelError, "too many", "too many connections: closed the oldest unidentified one, or refused a new one", "address", address.String(), "limit", connectionsMax)
}
