package grpc

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"

	gogrpc "google.golang.org/grpc"

	"github.com/topogen/topogen/runtime/transport"
	"github.com/topogen/topogen/runtime/transport/certs"
)

// Config says who a node is and whom it talks to.
type Config struct {
	Node        string // the name of this node; letters, digits, '.', '-' and '_'
	Topology    string // likewise; that of all nodes is the same
	Version     string // of what the payloads mean; that of all nodes is the same
	TrustDomain string // likewise, as in certificates; needed with TLS
	Address     string // where to listen, host:port; port 0: any, see Addr

	TLS      *TLS // nil: none, then loopback addresses alone
	Insecure bool // without TLS any address will do: whoever reaches it may say anything

	Peers map[string]string // where the others listen, by name; this node's own name is passed over

	// Register adds services for operators to the server, see Caller.
	Register func(gogrpc.ServiceRegistrar)

	MessageBytesMax    int // the largest payload, to send and to receive; default 512 MiB
	QueueMessages      int // what waits for a peer at most, for each group and class; default 16384
	QueueBytes         int // their payloads, for each group and class; default 128 MiB. One larger message waits alone
	ReassemblyBytesMax int // of chunks whose message is not complete, over all peers; default twice MessageBytesMax

	Logger *slog.Logger // default slog.Default()
}

// TLS names files in PEM. They are read again when they change.
type TLS struct {
	Cert string // the node's certificate, and those between it and the authority
	Key  string // its key
	CA   string // the authorities that are trusted
}

// complete checks a configuration and fills in the defaults.
func (c *Config) complete() error {
	if err := c.checkNames(); err != nil {
		return err
	}
	if c.TLS != nil && c.Insecure {
		return errors.New("both Insecure and TLS are set: want one of them")
	}
	for _, n := range []struct {
		name  string
		value *int
		usual int
	}{
		{"MessageBytesMax", &c.MessageBytesMax, messageBytesMax},
		{"QueueMessages", &c.QueueMessages, transport.QueueMessages},
		{"QueueBytes", &c.QueueBytes, transport.QueueBytes},
		{"ReassemblyBytesMax", &c.ReassemblyBytesMax, 2 * max(c.MessageBytesMax, messageBytesMax)},
	} {
		if *n.value < 0 {
			return fmt.Errorf("%s is %d: want at least 1, or 0 for the default", n.name, *n.value)
		}
		if *n.value == 0 {
			*n.value = n.usual
		}
	}
	if c.MessageBytesMax < chunkBytes {
		return fmt.Errorf("MessageBytesMax is %d: want at least %d, what goes in one frame", c.MessageBytesMax, chunkBytes)
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

// checkText checks what stands in a hello.
func checkText(what, text string) error {
	if len(text) > metadataNameBytes {
		return fmt.Errorf("%s has %d bytes, at most %d are allowed", what, len(text), metadataNameBytes)
	}
	if strings.ToValidUTF8(text, "") != text {
		return fmt.Errorf("%s is no valid UTF-8", what)
	}
	return nil
}

// open listens. Without TLS it does so on loopback addresses alone.
func (c *Config) open() (net.Listener, error) {
	address, err := net.ResolveTCPAddr("tcp", c.Address)
	if err != nil {
		return nil, fmt.Errorf("the address %q: %w", c.Address, err)
	}
	if c.loopbackOnly() && !address.IP.IsLoopback() {
		return nil, fmt.Errorf("%w: %q can be reached from other machines: set TLS (topoctl certs makes certificates for development), or listen on 127.0.0.1, or set Insecure", ErrInsecure, c.Address)
	}
	return net.ListenTCP("tcp", address)
}

func (c *Config) loopbackOnly() bool { return c.TLS == nil && !c.Insecure }
