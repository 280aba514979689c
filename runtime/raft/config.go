package raft

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
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
	snapshotEveryDefault = 100_000                // entries: less than a second of updates after the start of a node
	defaultHeartbeat     = 100 * time.Millisecond // much longer than a round trip and a sync within a data centre
	defaultElection      = time.Second            // ten heartbeats, so that some may be lost
	alone                = "alone"                // name of the only node if the file names none
)

// Config says where a state machine is kept. Generated code fills it from the topology
// file; FromEnvironment and the program may change it before [New]. Start checks the
// fields that depend on the host: Node, Dir and the TLS files. A Stepper does not need
// them.
type Config struct {
	Topology string // name in the topology file
	Group    string // name of the group of nodes that keep the state machine; default: the name of the processor

	// If a processor has several instances, each instance has its own state. Instance is
	// the number of this instance, counted from 0. Instances is the number of all
	// instances. The group of an instance has a name such as Group/3-of-16, and its log
	// is in the folder 3. The name contains the number of instances, so a log cannot be
	// opened with another number. With another number, keys would belong to other
	// instances.
	Instance, Instances int

	Node  string            // name of this node in Peers; not needed without Peers
	Peers map[string]string // the first members, name to host:port; empty for a state machine on one disk
	Join  bool              // this node is added to an existing group; Peers are this node and some of the members

	Dir           string        // folder of the log; with Peers the log is in Dir/NODE, and with Instances in a folder below, named by the number
	Sync          wal.Sync      // when the log is synced; with Peers it must be wal.Always
	SyncInterval  time.Duration // time between two syncs, with wal.Interval
	SnapshotEvery uint64        // entries between two snapshots; 0: 100,000

	// ChecksumEvery is the smallest number of entries between two checksums of the state,
	// 16 or more. The leader's value is used. The updates between two checksums also have
	// at least as many bytes as the state. A node stops if its state differs from the
	// state of most other members. No entry is applied while a checksum is computed. This
	// takes as long as encoding the state. 0: 10,000 entries, and no checksums while the
	// state is larger than 256 MiB.
	ChecksumEvery uint64
	NoChecksums   bool // this node does not compare its state

	ElectionTimeout time.Duration // a follower without a message from a leader starts an election after one to two of these; 0: 1s
	Heartbeat       time.Duration // time between two heartbeats of the leader; 0: 100 ms. Both times should be the same on all members: otherwise leases are shorter
	Prefer          string        // node that leads if it can; "": any node, and with Instances a different one for each
	Forward         bool          // a follower forwards proposals to the leader; otherwise it answers fsm.NotLeader

	SessionTTL time.Duration // how long an unused session of a client is kept, by the time in the log; 0: 1h. It must be the same on all members and must not change

	// Files of the certificate of this node, its key, and the certificate of the
	// authority, see package transport/grpc. Without them a node listens on loopback
	// addresses only, unless Insecure is set.
	TLSCert, TLSKey, TLSCA string
	TrustDomain            string // the domain in the certificates; default with TLS: Topology in lower case
	Insecure               bool   // nodes may use any address without TLS

	// NodeTLS and NodeTrustDomain are the files and the trust domain of the section cluster,
	// whose certificate has the same identity. They are used if neither TLSCert, TLSKey, TLSCA
	// nor Insecure is set.
	NodeTLS         TLS
	NodeTrustDomain string

	// Now is the clock of this computer, for the time of entries. nil: time.Now.
	Now func() time.Time

	// Called answers the calls of other nodes of the group, see [Machine.Call]. It may be
	// called by several goroutines. nil: such calls are refused.
	Called func(ctx context.Context, request []byte, answer func(part []byte) error) error

	Transport transport.Transport // used instead of gRPC, by no other group; the caller closes it
	Carried   bool                // for NewProcessor: the controller carries the messages to other nodes
	Disk      Disk                // used instead of the folder; for tests
	Logger    *slog.Logger        // nil: slog.Default()

	// LostLog says what to do about a member whose log is lost or is another one, in place of
	// the commands of topoctl. It is for a package that changes the members itself.
	LostLog string

	// Listener observes the state machine, for a package that keeps its own view of the
	// state. Its methods are called while the state changes: they must not wait, and must
	// not call the Machine. Machine.OnApplied replaces it.
	Listener fsm.Listener

	baseDir  string   // Dir, as the caller set it
	subdirs  []string // the folders below baseDir; the last one holds the log
	sessions int      // limit of sessions; 0: the default of package fsm
	ownTLS   bool     // TLSCert, TLSKey and TLSCA are not those of NodeTLS

	onLeader func(fsm.Leadership) // see NodeConfig.Led
}

// TLS names the files of a certificate, its key, and the certificate of the authority.
type TLS = certs.Files

// Environment variables that FromEnvironment reads.
const (
	VariableNode     = "TOPOGEN_NODE"
	VariableDir      = "TOPOGEN_RAFT_DIR"      // replaces log.path; the log is in a folder below, named after the group
	VariablePeers    = "TOPOGEN_RAFT_PEERS"    // n1=host:port,n2=host:port
	VariableJoin     = "TOPOGEN_RAFT_JOIN"     // true or false
	VariableCert     = "TOPOGEN_RAFT_TLS_CERT" // files
	VariableKey      = "TOPOGEN_RAFT_TLS_KEY"
	VariableCA       = "TOPOGEN_RAFT_TLS_CA"
	VariableTrust    = "TOPOGEN_RAFT_TRUST_DOMAIN"
	VariableInsecure = "TOPOGEN_RAFT_INSECURE"     // true or false
	VariableNoSums   = "TOPOGEN_RAFT_NO_CHECKSUMS" // true or false

	// The certificate of the node for all its listeners: that of a cluster, and those of groups
	// without a certificate of their own.
	VariableNodeCert  = "TOPOGEN_TLS_CERT"
	VariableNodeKey   = "TOPOGEN_TLS_KEY"
	VariableNodeCA    = "TOPOGEN_TLS_CA"
	VariableNodeTrust = "TOPOGEN_TRUST_DOMAIN"
)

// Where the user sets the files of TLS, for errors.
const (
	tlsNames     = VariableCert + ", " + VariableKey + " and " + VariableCA + " (raft.tls)"
	nodeTLSNames = VariableNodeCert + ", " + VariableNodeKey + " and " + VariableNodeCA + " (cluster.tls)"
	insecureName = VariableInsecure + "=true (raft.insecure)"
)

// FromEnvironment overrides fields of c with environment variables. A malformed variable
// is an error.
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
	text(VariableNodeCert, &c.NodeTLS.Cert)
	text(VariableNodeKey, &c.NodeTLS.Key)
	text(VariableNodeCA, &c.NodeTLS.CA)
	text(VariableNodeTrust, &c.NodeTrustDomain)
	if dir := os.Getenv(VariableDir); dir != "" {
		c.Dir = filepath.Join(dir, c.Group)
	}
	for name, v := range map[string]*bool{VariableJoin: &c.Join, VariableInsecure: &c.Insecure, VariableNoSums: &c.NoChecksums} {
		if s := os.Getenv(name); s != "" {
			b, err := strconv.ParseBool(s)
			if err != nil {
				return fmt.Errorf("raft: %s must be true or false, got %q", name, s)
			}
			*v = b
		}
	}
	if s := os.Getenv(VariablePeers); s != "" && len(c.Peers) > 0 {
		c.Peers = map[string]string{}
		for pair := range strings.SplitSeq(s, ",") {
			name, address, ok := strings.Cut(strings.TrimSpace(pair), "=")
			if !ok || name == "" || address == "" || c.Peers[name] != "" {
				return fmt.Errorf("raft: %s must be a list of NAME=HOST:PORT with each name once, got %q", VariablePeers, pair)
			}
			c.Peers[name] = address
		}
	}
	return nil
}

// check sets the defaults and checks the fields that do not depend on the host.
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
		return errors.New("raft: Config.Peers must list this node and some members of the group that it joins")
	case len(c.Peers) == 0:
		c.Node = cmp.Or(c.Node, alone)
		c.Forward = true // no other node could answer, so a proposal waits until this node leads
	case c.Prefer != "" && c.Peers[c.Prefer] == "" && !c.Join:
		return fmt.Errorf("raft: Config.Prefer must be one of the nodes %s, got %q", c.names(), c.Prefer)
	case c.Sync != wal.Always:
		return errors.New("raft: Config.Sync must be wal.Always with Peers: a node that loses an acknowledged entry breaks the guarantees of its group")
	}
	if c.Heartbeat <= 0 || c.ElectionTimeout < 2*c.Heartbeat {
		return fmt.Errorf("raft: the election timeout must be at least two heartbeats of %v, got %v", c.Heartbeat, c.ElectionTimeout)
	}
	if c.Instances > 1 {
		c.Group = fmt.Sprintf("%s/%d-of-%d", c.Group, c.Instance, c.Instances)
	}
	return nil
}

// checkHost checks the fields that depend on the host. check must have been called.
func (c *Config) checkHost() error {
	if c.Dir == "" && c.Disk == nil {
		return errors.New("raft: Config.Dir is missing: the folder of the log")
	}
	if len(c.Peers) > 0 {
		if err := c.checkNode(); err != nil {
			return err
		}
	}
	c.resolveDir()
	return nil
}

// resolveDir sets Dir to the folder of the log, below the folder that the caller named.
func (c *Config) resolveDir() {
	c.baseDir, c.subdirs = c.Dir, nil
	if len(c.Peers) > 0 {
		c.subdirs = append(c.subdirs, c.Node)
	}
	if c.Instances > 1 {
		c.subdirs = append(c.subdirs, strconv.Itoa(c.Instance))
	}
	if len(c.subdirs) > 0 {
		c.Dir = filepath.Join(append([]string{c.Dir}, c.subdirs...)...)
	}
}

// checkNode checks the fields of a node among several.
func (c *Config) checkNode() error {
	if c.Node == "" {
		return fmt.Errorf("raft: %s, or Config.Node, must say which of the nodes %s this is", VariableNode, c.names())
	}
	if _, listed := c.Peers[c.Node]; !listed {
		return fmt.Errorf("raft: Config.Node, or %s, must be one of the nodes %s, got %q", VariableNode, c.names(), c.Node)
	}
	if c.Transport != nil {
		return nil
	}
	if err := c.checkNodes(); err != nil {
		return err
	}
	return c.checkTLS()
}

// checkNodes checks the names and the addresses of the peers. The name of this node is
// also the name of its folder.
func (c *Config) checkNodes() error {
	at := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(c.Peers)) {
		if err := certs.CheckNode(name); err != nil {
			return fmt.Errorf("raft: the peers (Config.Peers, %s): %w", VariablePeers, err)
		}
		address := c.Peers[name]
		_, text, err := net.SplitHostPort(address)
		port := 0
		if err == nil {
			port, err = net.LookupPort("tcp", text)
		}
		if err != nil {
			return fmt.Errorf("raft: the address of %s (Config.Peers, %s) must be HOST:PORT, got %q: %w", name, VariablePeers, address, err)
		}
		if other, taken := at[address]; taken && port != 0 { // port 0 is any free port
			return fmt.Errorf("raft: %s and %s have the same address (Config.Peers, %s), %s; give each node its own", other, name, VariablePeers, address)
		}
		at[address] = name
	}
	return nil
}

// electionTicks returns the election timeout in heartbeats, rounded up.
func (c *Config) electionTicks() int { return int((c.ElectionTimeout + c.Heartbeat - 1) / c.Heartbeat) }

// names lists the names of the peers.
func (c *Config) names() string { return strings.Join(slices.Sorted(maps.Keys(c.Peers)), ", ") }

// checkTLS checks the TLS files, and sets the default of TrustDomain.
func (c *Config) checkTLS() error {
	names, trust := [...]string{VariableCert + " (Config.TLSCert)", VariableKey + " (Config.TLSKey)", VariableCA + " (Config.TLSCA)"}, VariableTrust
	if c.ownTLS = c.Insecure || c.TLSCert+c.TLSKey+c.TLSCA != ""; !c.ownTLS {
		c.TLSCert, c.TLSKey, c.TLSCA = c.NodeTLS.Cert, c.NodeTLS.Key, c.NodeTLS.CA
		if c.TrustDomain == "" {
			c.TrustDomain, trust = c.NodeTrustDomain, VariableNodeTrust
		}
		names = [...]string{VariableNodeCert + " (cluster.tls.cert)", VariableNodeKey + " (cluster.tls.key)", VariableNodeCA + " (cluster.tls.ca)"}
	}
	var missing []string
	for _, f := range []struct{ file, name string }{{c.TLSCert, names[0]}, {c.TLSKey, names[1]}, {c.TLSCA, names[2]}} {
		if f.file == "" {
			missing = append(missing, f.name)
		}
	}
	switch len(missing) {
	case 3:
		return nil // without TLS
	case 0:
	default:
		return fmt.Errorf("raft: TLS needs a certificate, its key and a CA; also set %s", strings.Join(missing, ", "))
	}
	c.TrustDomain = cmp.Or(c.TrustDomain, certs.DefaultTrustDomain(c.Topology))
	if err := certs.CheckTrustDomain(c.TrustDomain); err != nil {
		return fmt.Errorf("raft: trust_domain, or %s, whose default is the name of the topology in lower case: %w", trust, err)
	}
	return nil
}
