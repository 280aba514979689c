// Package serve lets programs outside of a topology use the store of its durable edges over
// HTTP. The generated code of a topology with listen names it; other topologies do not link it.
package serve

import (
	"crypto/tls"
	"fmt"
	"log/slog"

	"github.com/topogen/topogen/runtime/durable/edges"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/server"
	"github.com/topogen/topogen/runtime/transport/certs"
)

// HTTP answers the requests of the protocol at the address of the configuration, until it is
// closed. It is an edges.Server. With TLS files, only clients with a certificate of the
// authority have access. With a token, only those that show it.
func HTTP(b protocol.Backend, c *edges.Config, token string, log *slog.Logger) (edges.Listener, error) {
	config := server.Config{Backend: b, Listen: c.Listen, Insecure: c.Insecure, Logger: log}
	if token != "" {
		config.Tokens = []string{token}
	}
	if c.TLSCert != "" {
		var err error
		if config.TLS, err = certs.Server(c.Files(), tls.VersionTLS13, log); err != nil {
			return nil, fmt.Errorf("the certificate of the section durable: %w", err)
		}
	}
	s, err := server.Listen(config)
	if err != nil {
		return nil, err // not a nil *server.Server
	}
	return s, nil
}
