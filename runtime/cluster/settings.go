package cluster

import (
	"cmp"
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

	"github.com/topogen/topogen/runtime/cluster/session"
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/transport"
	"github.com/topogen/topogen/runtime/transport/certs"
)

// Environment variables. They override the topology file, and options override them.
const (
	VariableNode     = "TOPOGEN_NODE"    // name of this node; without it the process runs the whole topology
	VariableAddress  = "TOPOGEN_ADDRESS" // host:port where it listens
	VariableDir      = "TOPOGEN_DIR"     // folder for what it must remember
	VariableRoles    = "TOPOGEN_ROLES"   // separated by commas
	VariableNodes    = "TOPOGEN_NODES"   // n1=host:port,n2=host:port: the first members
	VariableCert     = "TOPOGEN_TLS_CERT"
	VariableKey      = "TOPOGEN_TLS_KEY"
	VariableCA       = "TOPOGEN_TLS_CA"
	VariableTrust    = "TOPOGEN_TRUST_DOMAIN"
	VariableInsecure = "TOPOGEN_INSECURE" // true or false
)

// tlsNames says where the user sets the files of TLS, for errors.
const tlsNames = VariableCert + ", " + VariableKey + " and " + VariableCA + " (cluster.tls)"

// retryTimeoutDefault is how long a message waits for a node that cannot be reached.
const retryTimeoutDefault = 30 * time.Second

// settings are a Config with the environment and the options.
type settings struct {
	Config
	node      string
	address   string
	roles     []string
	log       *slog.Logger
	transport transport.Transport // nil: gRPC
}

// resolve applies the environment and the options to a config. It returns false if they
// name no node.
func resolve(c Config, o piper.NodeSettings) (s settings, ok bool, err error) {
	s = settings{Config: c, log: o.Logger}
	s.node = cmp.Or(o.Name, os.Getenv(VariableNode))
	if s.node == "" {
		return s, false, nil
	}
	s.address = cmp.Or(o.Address, os.Getenv(VariableAddress))
	s.Dir = cmp.Or(o.Dir, os.Getenv(VariableDir), s.Dir)
	s.roles = o.Roles
	if text := os.Getenv(VariableRoles); s.roles == nil && text != "" {
		s.roles = strings.Split(text, ",")
	}
	s.TLSCert = cmp.Or(os.Getenv(VariableCert), s.TLSCert)
	s.TLSKey = cmp.Or(os.Getenv(VariableKey), s.TLSKey)
	s.TLSCA = cmp.Or(os.Getenv(VariableCA), s.TLSCA)
	s.TrustDomain = cmp.Or(os.Getenv(VariableTrust), s.TrustDomain, certs.DefaultTrustDomain(s.Topology))
	if err := s.readInsecure(); err != nil {
		return s, true, err
	}
	if text := os.Getenv(VariableNodes); text != "" {
		if s.Nodes, err = readNodes(text); err != nil {
			return s, true, err
		}
	}
	s.transport, _ = o.Transport.(transport.Transport)
	return s, true, s.check()
}

func (s *settings) readInsecure() (err error) {
	if text := os.Getenv(VariableInsecure); text != "" {
		if s.Insecure, err = strconv.ParseBool(text); err != nil {
			return fmt.Errorf("%s must be true or false, got %q", VariableInsecure, text)
		}
	}
	return nil
}

// readNodes reads a list of names and addresses.
func readNodes(text string) (map[string]string, error) {
	nodes := map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		name, address, ok := strings.Cut(strings.TrimSpace(pair), "=")
		if !ok || name == "" || address == "" || nodes[name] != "" {
			return nil, fmt.Errorf("%s must be a list of NAME=HOST:PORT with each name once, got %q", VariableNodes, pair)
		}
		nodes[name] = address
	}
	return nodes, nil
}

func (s *settings) check() error {
	if err := certs.CheckNode(s.node); err != nil {
		return fmt.Errorf("%s: %w", VariableNode, err)
	}
	s.address = cmp.Or(s.address, s.Nodes[s.node])
	if s.address == "" {
		return fmt.Errorf("%s: node %q is not one of the first members %s; a node that joins also needs its own address in %s",
			VariableNode, s.node, strings.Join(slices.Sorted(maps.Keys(s.Nodes)), ", "), VariableAddress)
	}
	for name, address := range s.Nodes {
		if _, _, err := net.SplitHostPort(address); err != nil {
			return fmt.Errorf("the address of node %s must be HOST:PORT, got %q", name, address)
		}
	}
	if s.Dir == "" {
		return fmt.Errorf("the folder of the node is missing: set cluster.dir in the topology file, or %s", VariableDir)
	}
	s.Dir = filepath.Join(s.Dir, s.node)
	if n := len(s.Plan); n == 0 || n > planBytesMax {
		return errors.New("the plan of the topology is missing; generate its code again")
	}
	s.Retry.Timeout = cmp.Or(s.Retry.Timeout, retryTimeoutDefault)
	s.Retry.Min = cmp.Or(s.Retry.Min, session.RetryMinDefault)
	s.Retry.Max = cmp.Or(s.Retry.Max, session.RetryMaxDefault)
	if err := s.checkTLS(); err != nil {
		return err
	}
	return s.Membership.Check(slices.Sorted(maps.Keys(s.Nodes)))
}

// checkTLS returns an error if some of the files for TLS are set, and others are not.
func (s *settings) checkTLS() error {
	set := 0
	for _, file := range []string{s.TLSCert, s.TLSKey, s.TLSCA} {
		if file != "" {
			set++
		}
	}
	if set != 0 && set != 3 {
		return fmt.Errorf("TLS needs a certificate, its key and a CA: set %s", tlsNames)
	}
	return nil
}
