package grpc

import (
	"context"
	"fmt"
	"log/slog"
	"net"

	gogrpc "google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/topogen/topogen/runtime/transport/certs"
)

// Dial returns a connection of an operator or a client to the services of a node, see
// Config.Register. The files hold its certificate. The node must be of the topology and the
// trust domain that this certificate names. Without TLS the node is not verified.
func Dial(address string, files *TLS) (*gogrpc.ClientConn, error) {
	return DialThrough(address, files, (&dialer{}).dial)
}

// Dialer opens a connection to an address, host:port.
type Dialer = func(ctx context.Context, address string) (net.Conn, error)

// LoopbackDialer returns a Dialer that refuses addresses of other hosts with ErrInsecure.
func LoopbackDialer() Dialer { return (&Config{}).dialer().dial }

// DialThrough is Dial with another way to open connections.
func DialThrough(address string, files *TLS, dial Dialer) (*gogrpc.ClientConn, error) {
	secure := insecure.NewCredentials()
	if files != nil {
		c, err := loadCertificates(*files, certs.ID{}, slog.Default())
		if err != nil {
			return nil, fmt.Errorf("transport: %w", err)
		}
		secure = newMutualTLS(c, isNodeOf, func(net.Conn, error) {})
	}
	return gogrpc.NewClient("passthrough:///"+address,
		gogrpc.WithTransportCredentials(secure),
		gogrpc.WithContextDialer(dial),
		gogrpc.WithKeepaliveParams(keepalive.ClientParameters{Time: clientPing, Timeout: pingTimeout}),
		gogrpc.WithNoProxy(),
		gogrpc.WithDisableServiceConfig(),
	)
}

// isNodeOf returns an error if another certificate is not for a node of the same topology.
func isNodeOf(own, other certs.ID) error {
	if other.Node == "" || other.Topology != own.Topology || other.TrustDomain != own.TrustDomain {
		return fmt.Errorf("reached %s, which is not a node of topology %q in %q", other, own.Topology, own.TrustDomain)
	}
	return nil
}
