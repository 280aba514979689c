package etcd

import (
	"crypto/tls"
	"fmt"

	"go.etcd.io/etcd/client/pkg/v3/transport"

	"github.com/topogen/topogen/runtime/cluster/table"
)

// Options are the settings of the topology file for this engine.
type Options struct {
	Endpoints     []string // URLs of the members of etcd
	Prefix        string   // of all keys of the table
	Cert, Key, CA string   // files; "": without a certificate of this node, and with the authorities of the system
}

// Opener returns the function that opens the table for package cluster.
func Opener(o Options) table.Opener {
	return func(s table.Setup) (table.Table, error) {
		files, err := o.tls()
		if err != nil {
			return nil, fmt.Errorf("table/etcd: %w", err)
		}
		return Open(Config{Endpoints: o.Endpoints, Prefix: o.Prefix, TLS: files, Logger: s.Logger})
	}
}

// tls reads the files. It returns nil if there are none: the scheme of an endpoint then says
// whether the connection uses TLS.
func (o *Options) tls() (*tls.Config, error) {
	if o.Cert == "" && o.CA == "" {
		return nil, nil
	}
	return transport.TLSInfo{CertFile: o.Cert, KeyFile: o.Key, TrustedCAFile: o.CA}.ClientConfig()
}
