package etcd

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// Config configures the table on a node.
type Config struct {
	Endpoints []string    // URLs of the members of etcd
	Prefix    string      // of all keys of the table, for example /orders; each cluster needs a prefix of its own
	TLS       *tls.Config // nil: without TLS
	Username  string      // "": without authentication
	Password  string

	// SnapshotEvery is how many entries follow a snapshot before the next one is written.
	// 0: 256.
	SnapshotEvery uint64

	Logger *slog.Logger // nil: slog.Default()
}

const (
	snapshotDefault = 256       // entries that a node reads when it joins: a few round trips
	snapshotBytes   = 4 << 20   // also write a snapshot after entries of this size
	partBytes       = 512 << 10 // of a snapshot in a key: etcd accepts requests of 1.5 MiB
	entriesPerPage  = 64        // entries that one request reads: at most 64 MiB
	leaseGuardsMax  = 64        // of a transaction: etcd accepts 128 operations
	prefixBytesMax  = 512

	dialTimeout    = 5 * time.Second
	requestTimeout = 5 * time.Second // of one request; then it is repeated
	retryMin       = 50 * time.Millisecond
	retryMax       = 2 * time.Second
)

// check sets the defaults and checks the configuration.
func (c *Config) check() error {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.SnapshotEvery == 0 {
		c.SnapshotEvery = snapshotDefault
	}
	c.Prefix = strings.TrimSuffix(c.Prefix, "/")
	switch {
	case len(c.Endpoints) == 0:
		return errors.New("table/etcd: Config.Endpoints must be set")
	case c.Prefix == "" || len(c.Prefix) > prefixBytesMax:
		return fmt.Errorf("table/etcd: Config.Prefix must have 1 to %d bytes without a slash at the end, got %d", prefixBytesMax, len(c.Prefix))
	}
	return nil
}
