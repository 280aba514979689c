package spec

import (
	"time"

	"github.com/topogen/topogen/spec/finding"
)

// Cluster is the cluster section, with its defaults filled in: the nodes on which the topology
// runs. Without a name at its start, a program runs the whole topology in one process.
type Cluster struct {
	Nodes        []Peer // in file order
	Dir          Text   // "" when the file leaves it out
	TLS          *TLS
	TrustDomain  Text // "": the name of the topology
	Insecure     bool // without TLS even between hosts
	Addresses    Addresses
	Etcd         *Etcd // nil when the file leaves it out
	Membership   Membership
	Fence        Fence
	TieBreaker   Text // the name of a node, "" for none
	Retry        Resend
	Rebalance    Rebalance
	Neighborhood int // nodes; 32 by default
	At           finding.Range
	Pointer      string
}

// Addresses is the engine of the address table.
type Addresses string

const (
	AddressesRaft      Addresses = "raft"
	AddressesEtcd      Addresses = "etcd"
	AddressesBroadcast Addresses = "broadcast"
)

// Fence says which nodes may act while nodes cannot reach each other.
type Fence string

const (
	FenceMajority Fence = "majority"
	FenceOff      Fence = "off"
)

// Rebalance says how instances are placed when a node joins or leaves.
type Rebalance string

const (
	RebalanceNone    Rebalance = "none"
	RebalanceMinimal Rebalance = "minimal-move"
	RebalanceLoad    Rebalance = "load" // reserved: it has a finding
)

// Etcd is the etcd cluster that holds the address table.
type Etcd struct {
	Endpoints []Text
	Prefix    Text // "/topogen/" and the name of the topology by default
	TLS       *TLS // nil: no certificate; each of its files may be ""
	At        finding.Range
	Pointer   string
}

// Membership has the settings of failure detection.
type Membership struct {
	Profile         string // "document", "lan", "local"
	Detector        string // "swim", "memberlist"
	Interval        time.Duration
	DirectTimeout   time.Duration
	IndirectTimeout time.Duration
	Helpers         int // -1: as in the profile
	Suspicion       time.Duration
	At              finding.Range
	Pointer         string
}

// detectorMemberlist is the detector that is the library hashicorp/memberlist.
const detectorMemberlist = "memberlist"

// Resend has the times of messages to a node that cannot be reached.
type Resend struct {
	Timeout time.Duration // 30s by default
	Min     time.Duration // 50ms by default
	Max     time.Duration // 2s by default
}

// PlacementKind says on which nodes the instances of a processor run.
type PlacementKind string

const (
	Nowhere   PlacementKind = ""           // there is no cluster
	Spread    PlacementKind = "spread"     // each instance on one node
	EveryNode PlacementKind = "every-node" // all instances on each node
	OnNode    PlacementKind = "node"       // all instances on one node
)

// Placement is the choice of nodes for the instances of a processor. Without a cluster the kind
// is Nowhere. External processors and replicated state machines are on every node, and another
// state machine is on the node of its controller.
type Placement struct {
	Kind    PlacementKind
	Node    Text // for OnNode
	Role    Text // reserved: it has a finding
	With    int  // for Spread: the first processor whose instances are on the same nodes as those of this one; otherwise this one
	Given   bool // the file has the key placement
	At      finding.Range
	Pointer string
}

// The values of the key delivery of an edge.
const (
	AtLeastOnce = "at-least-once"
	AtMostOnce  = "at-most-once"
)
