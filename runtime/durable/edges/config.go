package edges

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/topogen/topogen/runtime/durable"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/piper"
)

// Config describes the durable edges of a topology. Generated code makes it.
type Config struct {
	Topology string
	Store    string // a folder, or the URL of a server that has the store; "" with Replicate
	Lease    time.Duration

	// Replicate opens the store on the nodes of a group. It is not used if the environment or
	// an option names a Store. Package durable/edges/nodes has the function that it calls. A
	// topology whose store is not on several nodes does not link that package.
	Replicate func(log *slog.Logger) (Replica, error)

	Listen                 string // host:port for programs outside; "": there are none
	TLSCert, TLSKey, TLSCA string // of Listen
	Insecure               bool   // Listen may be the address of a network without TLS and without a token
	Serve                  Server // starts the server for programs outside; nil: there is none

	Edges []Edge
}

// A Server begins to answer programs outside. Package durable/edges/serve has the usual one. A
// topology without listen does not link it.
type Server func(b protocol.Backend, c *Config, token string, log *slog.Logger) (Listener, error)

// A Listener is a server that runs.
type Listener interface {
	Address() string
	Failed() <-chan error // receives the reason if it cannot continue
	Close(ctx context.Context) error
}

// A Replica is this process's part of a store on several nodes.
type Replica interface {
	protocol.Backend
	Name() string             // of this node in its group
	Stopped() <-chan struct{} // closed when it has ended
	Err() error               // why it has ended before Close; nil: it has not
	Close(ctx context.Context) error
}

// Edge describes one durable edge.
type Edge struct {
	Index    int    // of the edge
	Receiver int    // index of the receiving processor
	Function string // name of its handler in the store
	Timeout  time.Duration
	Retry    durable.Retry
	Limit    durable.Limit
	Handler  Handler
}

// ActivationsMax is the largest number of executions that a process has acquired at a time. They
// run, or wait for their instance. In addition, a process keeps up to 10,000 executions of instances that
// were given up. A heartbeat names all of these executions.
const ActivationsMax = 1024

// forever is the timeout of an execution without one. Times in the store have room for it.
const forever = 100 * 365 * 24 * time.Hour

// Names of the environment variables. They override the topology file, and options of New
// override them.
const (
	storeVariable  = "TOPOGEN_DURABLE_STORE"
	listenVariable = "TOPOGEN_DURABLE_LISTEN"
	tokenVariable  = "TOPOGEN_DURABLE_TOKEN"
)

// apply overrides the settings of the file with the environment, and both with the options.
func (c *Config) apply(s piper.DurableSettings) error {
	file := c.Listen
	c.Listen = ""
	for _, v := range []struct {
		name   string
		target *string
		option string
	}{
		{storeVariable, &c.Store, s.Store},
		{listenVariable, &c.Listen, s.Listen},
	} {
		if text := os.Getenv(v.name); text != "" {
			*v.target = text
		}
		if v.option != "" {
			*v.target = v.option
		}
	}
	if c.Store != "" {
		c.Replicate = nil
	}
	switch {
	case s.Client:
		c.Listen = ""
		return nil
	case s.Node && c.Replicate == nil && s.Memory == nil && !isURL(c.Store):
		return fmt.Errorf("durable: the nodes of a cluster must share a store, and only one process can open the folder %q: set %s to the URL of a server", c.Store, storeVariable)
	}
	switch {
	case c.Listen == "" && !isURL(c.Store): // the same program may run with the store of another process
		c.Listen = file
	case c.Listen != "" && isURL(c.Store):
		return fmt.Errorf("durable: listen must not be set if another process has the store, got %q and %q", c.Listen, protocol.Redacted(c.Store))
	}
	if c.Listen != "" && c.Serve == nil {
		return fmt.Errorf("durable: %s is set, but the section durable of the topology file has no listen, so the program has no server", listenVariable)
	}
	return nil
}

// shared reports whether programs outside may start executions at any time.
func (c *Config) shared() bool { return c.Listen != "" || isURL(c.Store) }
