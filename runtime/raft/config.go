package raft

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/raft/wal"
	"github.com/topogen/topogen/runtime/transport"
	"github.com/topogen/topogen/runtime/transport/certs"
)

const (
	defaultHeartbeat = 100 * time.Millisecond // far above a round trip and a sync within a data centre
	defaultElection  = time.Second            // ten heartbeats: some may be lost
	alone            = "alone"                // name of the only node, where the file names none
)

// Config says where a machine is kept. Generated code fills it from the topology
// file; FromEnvironment and the program may change it before [New]. What depends on the
// host (Node, Dir, the files of TLS) is asked for by Start, and not under a Stepper.
type Config struct {
	Topology string // name in the file
	Group    string // of the machines that are one; default: the processor's name

	// Of several instances, each with a state of its own: which one this is, from 0 on, and
	// how many there are. Its group is Group/3-of-16 then, and its log in a folder 3. So a
	// log is not opened with another number of instances, by which keys would go elsewhere.
	Instance, Instances int

	Node  string            // which of Peers this is; no need of it where there are none
	Peers map[string]string // the first members, name to host:port; empty: one disk alone
	Join  bool              // this node is added to a group that exists; Peers are some of its members

	Dir           string        // folder of the log; with Peers a folder below it, named like the node; with Instances one below that
	Sync          wal.Sync      // wal.Always, and nothing else with Peers
	SyncInterval  time.Duration // for wal.Interval
	SnapshotEvery uint64        // entries; 0: 100,000

	// From one checksum of the state to the next are at least so many entries, 16 or more,
	// and updates of as many bytes as the state has: that of the leader counts. A node
	// whose state differs from that of most of the others ends. No entry is applied while
	// a state is summed, which takes as long as writing it. 0: 10,000 entries, and no
	// checksums while the state has more than 256 MiB.
	ChecksumEvery uint64
	NoChecksums   bool // this node does not compare its state

	ElectionTimeout time.Duration // without word from a leader; 0: 1s. The next comes at up to twice of it
	Heartbeat       time.Duration // 0: 100 ms
	Prefer          string        // node that is to lead, while it can; "": any, and with Instances another one for each
	Forward         bool          // a follower passes proposals on to the leader; else it answers with fsm.NotLeader

	SessionTTL time.Duration // how long a client's session is kept without use, by the log's time; 0: 1h. The same on all members, as long as the log lives

	// How nodes know each other: files of a certificate, its key and the authority's
	// certificate, see package transport/grpc. Without them a node listens on
	// loopback addresses alone, unless Insecure says otherwise.
	TLSCert, TLSKey, TLSCA string
	TrustDomain            string // that their certificates name; default with TLS: Topology
	Insecure               bool

	Transport transport.Transport // in place of gRPC; the caller closes it
	Carried   bool                // for NewProcessor: the controller carries messages to other nodes
	Disk      Disk                // in place of the folder; for tests
	Logger    *slog.Logger        // nil: slog.Default()

	above    string   // Dir, as the caller has named it
	below    []string // the folders below it, of which the last one holds the log
	sessions int      // kept at once; 0: the default of package fsm

	led func(fsm.Leadership) // NodeConfig.Led
}

// Environment variables that FromEnvironment heeds.
const (
	VariableNode     = "TOPOGEN_NODE"
	VariableDir      = "TOPOGEN_RAFT_DIR"      // in place of log.path; with the group's name below it
	VariablePeers    = "TOPOGEN_RAFT_PEERS"    // n1=host:port,n2=host:port
	VariableJoin     = "TOPOGEN_RAFT_JOIN"     // true or false
	VariableCert     = "TOPOGEN_RAFT_TLS_CERT" // files
	VariableKey      = "TOPOGEN_RAFT_TLS_KEY"
	VariableCA       = "TOPOGEN_RAFT_TLS_CA"
	VariableTrust    = "TOPOGEN_RAFT_TRUST_DOMAIN"
	VariableInsecure = "TOPOGEN_RAFT_INSECURE"     // true or false
	VariableNoSums   = "TOPOGEN_RAFT_NO_CHECKSUMS" // true or false
)

// FromEnvironment changes c where an environment variable says so. A malformed
// one is an error.
func (c *Config) FromEnvironment() error {
	text := func(name string, v *string) {
		if s := os.Getenv(name); s != "" {
			*v = s
		}
	}
	text(VariableNode, &c.Node)
	text(VariableCert, &c.TLSCert)
	text(VariableKey, &c.TLSKey)
	text(VariableCA, &c.TLSCA)
	text(VariableTrust, &c.TrustDomain)
	if dir := os.Getenv(VariableDir); dir != "" {
		c.Dir = filepath.Join(dir, c.Group)
	}
	for name, v := range map[string]*bool{VariableJoin: &c.Join, VariableInsecure: &c.Insecure, VariableNoSums: &c.NoChecksums} {
		if s := os.Getenv(name); s != "" {
			b, err := strconv.ParseBool(s)
			if err != nil {
				return fmt.Errorf("raft: %s=%q is neither true nor false", name, s)
			}
			*v = b
		}
	}
	if s := os.Getenv(VariablePeers); s != "" && len(c.Peers) > 0 {
		c.Peers = map[string]string{}
		for pair := range strings.SplitSeq(s, ",") {
			name, address, ok := strings.Cut(strings.TrimSpace(pair), "=")
			if !ok || name == "" || address == "" || c.Peers[name] != "" {
				return fmt.Errorf("raft: %s: %q is not name=host:port, or is there twice", VariablePeers, pair)
			}
			c.Peers[name] = address
		}
	}
	return nil
}

// check fills in defaults, and says what is wrong with c on whatever host.
func (c *Config) check() error {
	c.ElectionTimeout = cmp.Or(c.ElectionTimeout, defaultElection)
	c.Heartbeat = cmp.Or(c.Heartbeat, defaultHeartbeat)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	switch {
	case c.Instances < 0, c.Instance < 0, c.Instance >= max(1, c.Instances):
		return fmt.Errorf("raft: Config.Instance must be one of %d instances, counted from 0, got %d", max(1, c.Instances), c.Instance)
	case len(c.Peers) == 0 && c.Join:
		return errors.New("raft: to join a group, Peers must say where some of its members are")
	case len(c.Peers) == 0:
		c.Node = cmp.Or(c.Node, alone)
		c.Forward = true // there is no other to be asked: a proposal waits until the node leads
	case c.Prefer != "" && c.Peers[c.Prefer] == "" && !c.Join:
		return fmt.Errorf("raft: Config.Prefer must be one of the nodes %s, got %q", c.names(), c.Prefer)
	case c.Sync != wal.Always:
		return errors.New("raft: several machines need wal.Always: who forgets what it has promised breaks the others' promises, too")
	}
	if c.Heartbeat <= 0 || c.ElectionTimeout < 2*c.Heartbeat {
		return fmt.Errorf("raft: an election timeout of %v is less than two heartbeats of %v", c.ElectionTimeout, c.Heartbeat)
	}
	if c.Instances > 1 {
		c.Group = fmt.Sprintf("%s/%d-of-%d", c.Group, c.Instance, c.Instances)
	}
	return nil
}

// complete says what c lacks to be started on this host. It was checked.
func (c *Config) complete() error {
	if c.Dir == "" && c.Disk == nil {
		return errors.New("raft: Config.Dir is missing: the folder of the log")
	}
	if len(c.Peers) > 0 {
		if err := c.completeNode(); err != nil {
			return err
		}
	}
	c.place()
	return nil
}

// place names the folder of the log, below the one that the caller has named.
func (c *Config) place() {
	c.above, c.below = c.Dir, nil
	if len(c.Peers) > 0 {
		c.below = append(c.below, c.Node)
	}
	if c.Instances > 1 {
		c.below = append(c.below, strconv.Itoa(c.Instance))
	}
	if len(c.below) > 0 {
		c.Dir = filepath.Join(append([]string{c.Dir}, c.below...)...)
	}
}

// completeNode says what a node among several lacks.
func (c *Config) completeNode() error {
	if c.Node == "" {
		return fmt.Errorf("raft: which node is this: %s? Set %s, or Config.Node", c.names(), VariableNode)
	}
	if _, listed := c.Peers[c.Node]; !listed {
		return fmt.Errorf("raft: Config.Node, or %s, must be one of the nodes %s, got %q", VariableNode, c.names(), c.Node)
	}
	if c.Transport != nil {
		return nil
	}
	return c.checkTLS()
}

// names are those of the peers.
func (c *Config) names() string { return strings.Join(slices.Sorted(maps.Keys(c.Peers)), ", ") }

// checkTLS completes what nodes show each other, and says what is wrong with it.
func (c *Config) checkTLS() error {
	var missing []string
	for _, f := range []struct{ file, name string }{
		{c.TLSCert, VariableCert + " (Config.TLSCert)"},
		{c.TLSKey, VariableKey + " (Config.TLSKey)"},
		{c.TLSCA, VariableCA + " (Config.TLSCA)"},
	} {
		if f.file == "" {
			missing = append(missing, f.name)
		}
	}
	switch len(missing) {
	case 3:
		return nil // no TLS
	case 0:
	default:
		return fmt.Errorf("raft: TLS is half set: there is no %s", strings.Join(missing, ", no "))
	}
	c.TrustDomain = cmp.Or(c.TrustDomain, c.Topology)
	if err := certs.CheckTrustDomain(c.TrustDomain); err != nil {
		return fmt.Errorf("raft: trust_domain, or %s, whose default is the name of the topology: %w", VariableTrust, err)
	}
	return nil
}
