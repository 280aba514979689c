package plan

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/topogen/topogen/spec"
)

// Cluster has the settings of a topology that may run on several nodes. Without a node's name
// at its start, a program runs the whole topology in one process.
type Cluster struct {
	Nodes         []Peer // the first members, by name
	Dir           string // "": not in the file
	Cert, Key, CA string // "": not in the file
	TrustDomain   string // "": the name of the topology
	Insecure      bool
	Addresses     string // "raft", "etcd", "broadcast"
	Etcd          *Etcd  // set if Addresses is "etcd"
	Membership    Membership
	Fence         string // "majority", "off"
	TieBreaker    string // the name of a node; "": none
	RetryTimeout  time.Duration
	RetryMin      time.Duration
	RetryMax      time.Duration
	Rebalance     string // "none", "minimal-move"
	Neighborhood  int
	Messages      []string // names of the messages and replies that may go to another node, sorted: they need codecs
	Sets          []Set    // processors whose instances with the same index are always on the same node
}

// Set is a set of at least two processors with placement spread whose instances with the same
// index are always on the same node. The address table needs one entry for each index.
type Set struct{ Processors []int }

// Etcd is the etcd cluster that holds the address table.
type Etcd struct {
	Endpoints     []string
	Prefix        string
	Cert, Key, CA string // "": none
}

// Membership has the settings of failure detection. A field that is 0 has the value of the
// profile.
type Membership struct {
	Profile         string // "document", "lan", "local"
	Detector        string // "swim", "memberlist"
	Interval        time.Duration
	DirectTimeout   time.Duration
	IndirectTimeout time.Duration
	Helpers         int // -1: none
	Suspicion       time.Duration
}

// The kinds of a Placement.
const (
	Spread    = string(spec.Spread)    // each instance on one node
	EveryNode = string(spec.EveryNode) // all instances on each node
	OnNode    = string(spec.OnNode)    // all instances on one node
)

// Placement is the choice of nodes for the instances of a processor.
type Placement struct {
	Kind string
	Node string // for OnNode
	With int    // the first processor of its Set; without a Set the processor itself
}

// Everywhere reports whether messages of edge i go to the instances of all nodes.
func (p *Plan) Everywhere(i int) bool {
	e := &p.Edges[i]
	return e.Crosses && e.Route == Broadcast && p.Processors[e.To].Placement.Kind == EveryNode
}

// Aimed reports whether each message of edge i goes to one instance of a processor that has
// its own instances on every node: the message names the node, or the message is a reply.
func (p *Plan) Aimed(i int) bool {
	e := &p.Edges[i]
	return e.Crosses && e.Route != Broadcast && p.Processors[e.To].Placement.Kind == EveryNode
}

// cluster adds the settings of the cluster, and decides which messages may go to another node.
func (b *builder) cluster() {
	t := b.topology
	if t.Cluster == nil {
		return
	}
	b.plan.Cluster = clusterOf(t.Cluster)
	messages := make(map[string]bool)
	for i := range b.plan.Edges {
		e := &b.plan.Edges[i]
		switch {
		case e.DeadLetter: // package spec makes sure that dead letters stay on their node
		case e.ReplyOf >= 0:
			request := &b.plan.Edges[e.ReplyOf]
			e.Crosses, e.Delivery = request.Crosses, request.Delivery
		case t.Crosses(&t.Edges[i]):
			e.Crosses, e.Delivery = true, t.Edges[i].Delivery
			messages[e.Message] = true
			if e.Reply != "" {
				messages[e.Reply] = true
			}
		}
	}
	b.plan.Cluster.Messages = slices.Sorted(maps.Keys(messages))
	sets := make(map[int][]int)
	for i := range b.plan.Processors {
		from := t.Processors[i].Placement
		b.plan.Processors[i].Placement = &Placement{Kind: string(from.Kind), Node: from.Node.Value, With: from.With}
		if from.Kind == spec.Spread {
			sets[from.With] = append(sets[from.With], i)
		}
	}
	for _, first := range slices.Sorted(maps.Keys(sets)) {
		if len(sets[first]) > 1 {
			b.plan.Cluster.Sets = append(b.plan.Cluster.Sets, Set{sets[first]})
		}
	}
}

func clusterOf(f *spec.Cluster) *Cluster {
	c := &Cluster{
		Dir: f.Dir.Value, TrustDomain: f.TrustDomain.Value, Insecure: f.Insecure, Addresses: string(f.Addresses),
		Membership: Membership{
			Profile: f.Membership.Profile, Detector: f.Membership.Detector, Interval: f.Membership.Interval, DirectTimeout: f.Membership.DirectTimeout,
			IndirectTimeout: f.Membership.IndirectTimeout, Helpers: f.Membership.Helpers, Suspicion: f.Membership.Suspicion,
		},
		Fence: string(f.Fence), TieBreaker: f.TieBreaker.Value, Rebalance: string(f.Rebalance), Neighborhood: f.Neighborhood,
		RetryTimeout: f.Retry.Timeout, RetryMin: f.Retry.Min, RetryMax: f.Retry.Max,
	}
	switch f.Membership.Helpers {
	case -1:
		c.Membership.Helpers = 0
	case 0:
		c.Membership.Helpers = -1
	}
	if f.TLS != nil {
		c.Cert, c.Key, c.CA = f.TLS.Cert.Value, f.TLS.Key.Value, f.TLS.CA.Value
	}
	for _, node := range f.Nodes {
		c.Nodes = append(c.Nodes, Peer{node.Name.Value, node.Address.Value})
	}
	slices.SortFunc(c.Nodes, func(a, b Peer) int { return cmp.Compare(a.Name, b.Name) })
	if e := f.Etcd; e != nil && f.Addresses == spec.AddressesEtcd {
		c.Etcd = &Etcd{Prefix: e.Prefix.Value}
		for _, endpoint := range e.Endpoints {
			c.Etcd.Endpoints = append(c.Etcd.Endpoints, endpoint.Value)
		}
		if e.TLS != nil {
			c.Etcd.Cert, c.Etcd.Key, c.Etcd.CA = e.TLS.Cert.Value, e.TLS.Key.Value, e.TLS.CA.Value
		}
	}
	return c
}
