package cluster

import (
	"time"

	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/member"
)

// Config describes the cluster of a topology. Generated code makes it from the topology
// file.
type Config struct {
	Topology   string
	Plan       string   // hash of Identity; all nodes must have the same
	Identity   []string // what all nodes must agree upon, for the error of a node that differs: see table.Plan
	Processors []Processor
	Edges      []string // by index, as in the topology file

	Nodes       map[string]string // the first members: host:port by name
	Dir         string            // folder for what a node must remember; TOPOGEN_DIR
	TLSCert     string            // files of the certificate of this node, its key, and the authority; TOPOGEN_TLS_CERT, …_KEY, …_CA
	TLSKey      string
	TLSCA       string
	TrustDomain string // the domain in the certificates; default: Topology in lower case; TOPOGEN_TRUST_DOMAIN
	Insecure    bool   // nodes may use any address without TLS; TOPOGEN_INSECURE

	Table        table.Opener
	Detect       func(s member.Settings) (member.Detector, error)
	Membership   member.Config
	Retry        Retry
	Rebalance    bool // no effect yet: minimal moves when a node joins
	Neighborhood int  // nodes to which messages for all nodes are sent at a time; 0: no limit

	Together string // settings that all running nodes must have in common
}

// Processor describes one processor for the address table.
type Processor struct {
	Name      string
	Instances int       // in the cluster, or on each node with EveryNode; 0 for an external processor
	Placement Placement // where its instances run
	Node      string    // for OnNode
	With      int       // index of the processor in whose places its instances are; its own index otherwise
}

// Placement says where the instances of a processor run.
type Placement uint8

const (
	Spread    Placement = iota // each instance on one node, evenly
	EveryNode                  // all instances on each node
	OnNode                     // all instances on one node
)

// Retry says how long messages wait for a node that cannot be reached.
type Retry struct {
	Timeout time.Duration // then an Ask fails, and a message is dropped and counted
	Min     time.Duration // first pause between two attempts to connect
	Max     time.Duration // longest pause
}
