package grpc

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"

	gogrpc "google.golang.org/grpc"

	"github.com/topogen/topogen/runtime/transport"
	"github.com/topogen/topogen/runtime/transport/certs"
)

// Config is the configuration of a node's transport.
type Config struct {
	Node        string // the name of this node; letters, digits, '.', '-' and '_'
	Topology    string // letters, digits, '.', '-' and '_'; must be the same on all nodes
	Version     string // the version of the payloads' format; must be the same on all nodes
	TrustDomain string // the trust domain of the certificates; must be the same on all nodes; required with TLS
	Address     string // the address to listen on, host:port; port 0 means any port, see Addr

	TLS *TLS // nil: no TLS, and only loopback addresses
	// TLSNames says where the user sets the files of TLS, and InsecureName where Insecure, for
	// errors. "": the names of the fields.
	TLSNames, InsecureName string
	Insecure               bool // without TLS, allow any address: anyone who reaches it can send messages

	Peers map[string]string // the addresses of the other nodes, by name; an entry for this node is ignored

	// Register adds services for operators to the server, see Caller.
	Register func(gogrpc.ServiceRegistrar)

	// ClientService is the name of the registered service that clients may call too, for
	// example "topogen.cluster.Clients". All other services are for operators only.
	ClientService string

	// NodeService is the name of the registered service that only nodes of this topology may
	// call, for example "topogen.raft.Calls".
	NodeService string

	// Limits are the limits of calls of registered services, by method, for example
	// "/topogen.raft.Operators/Operate". All other methods have the zero CallLimit.
	Limits map[string]CallLimit

	MessageBytesMax    int // the largest payload, to send and to receive; default 512 MiB
	QueueMessages      int // queued messages for a peer, for each group and class; default 16384
	QueueBytes         int // bytes of their payloads, for each group and class; default 128 MiB. A larger message may be queued alone
	ReassemblyBytesMax int // bytes of incomplete messages, for all peers; default twice MessageBytesMax

	// Identity decides which process of a node may be connected; nil: the first one, until its
	// connections have ended.
	Identity Identity

	// Ended reports whether a peer has ended on purpose, so that its missing connection
	// needs no warning. It may be called by several goroutines; nil: no peer has ended so.
	Ended func(peer string) bool

	Logger *slog.Logger // default slog.Default()
}

// TLS names the files of this end. They are read again when they change.
type TLS = certs.Files

// complete checks a configuration and fills in the defaults.
func (c *Config) complete() error {
	if err := c.checkNames(); err != nil {
		return err
	}
	if c.TLS != nil && c.Insecure {
		return errors.New("both Insecure and TLS are set: set only one of them")
	}
	for _, n := range []struct {
		name      string
		value     *int
		byDefault int
	}{
		{"MessageBytesMax", &c.MessageBytesMax, messageBytesMax},
		{"QueueMessages", &c.QueueMessages, transport.QueueMessages},
		{"QueueBytes", &c.QueueBytes, transport.QueueBytes},
		{"ReassemblyBytesMax", &c.ReassemblyBytesMax, 2 * max(c.MessageBytesMax, messageBytesMax)},
	} {
		if *n.value < 0 {
			return fmt.Errorf("%s must be at least 1, or 0 for the default, got %d", n.name, *n.value)
		}
		if *n.value == 0 {
			*n.value = n.byDefault
		}
	}
	if c.MessageBytesMax < chunkBytes {
		return fmt.Errorf("MessageBytesMax must be at least %[2]d, the size of a chunk, got %[1]d", c.MessageBytesMax, chunkBytes)
	}
	if c.Identity == nil {
		c.Identity = firstConnected{random()}
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return nil
}

func (c *Config) checkNames() error {
	if c.TLS == nil && c.TrustDomain == "" {
		return errors.Join(certs.CheckNode(c.Node), checkText("Topology", c.Topology), checkText("Version", c.Version))
	}
	id := certs.ID{TrustDomain: c.TrustDomain, Topology: c.Topology, Node: c.Node}
	return errors.Join(id.Check(), checkText("Topology", c.Topology), checkText("Node", c.Node), checkText("Version", c.Version))
}

// checkText checks a string of the hello.
func checkText(what, text string) error {
	if len(text) > metadataNameBytes {
		return fmt.Errorf("%s must have at most %[3]d bytes, got %[2]d", what, len(text), metadataNameBytes)
	}
	if strings.ToValidUTF8(text, "") != text {
		return fmt.Errorf("%s must be valid UTF-8", what)
	}
	return nil
}

// open opens the listener. Without TLS it accepts only loopback addresses.
func (c *Config) open() (net.Listener, error) {
	address, err := net.ResolveTCPAddr("tcp", c.Address)
	if err != nil {
		return nil, fmt.Errorf("the address %q: %w", c.Address, err)
	}
	if c.loopbackOnly() && !address.IP.IsLoopback() {
		return nil, fmt.Errorf("%w: %q can be reached from other hosts: set %s (topoctl certs makes certificates for development), or listen on 127.0.0.1, or set %s",
			ErrInsecure, c.Address, cmp.Or(c.TLSNames, "TLS"), cmp.Or(c.InsecureName, "Insecure"))
	}
	return net.ListenTCP("tcp", address)
}

func (c *Config) loopbackOnly() bool { return c.TLS == nil && !c.Insecure }
