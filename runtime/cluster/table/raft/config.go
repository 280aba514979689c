package raft

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/transport"
)

// Config configures the table on a node.
type Config struct {
	Topology string // name in the topology file
	Group    string // distinguishes the tables of a topology; "": addresses

	Node    string            // name of this node
	Address string            // host:port, for the other members
	First   map[string]string // the first nodes, name to host:port, the same on all nodes; they vote
	Plan    string            // hash of the plan of this program; a table with another plan refuses the node

	Dir       string              // existing folder; the log is in Dir/addresses/NODE
	Disk      raft.Disk           // used instead of Dir; for tests
	Transport transport.Transport // shared with other parts of the node; the caller closes it after the table

	ElectionTimeout time.Duration // see raft.Config; 0: 1s
	Heartbeat       time.Duration // 0: 200ms

	// Gone reports that a node will not come back with its disk, as an operator says, or
	// the failure detector after a long time. The
	// leader calls it often, so it must not wait. If it was true for ReplaceAfter, and the
	// node is silent, a voter loses its vote to a learner. nil: no node is ever gone.
	Gone         func(node string) bool
	ReplaceAfter time.Duration // 0: a minute

	Logger *slog.Logger // nil: slog.Default()
}

const (
	defaultGroup     = "addresses"
	defaultElection  = time.Second
	defaultHeartbeat = 200 * time.Millisecond // five in an election timeout: heartbeats are most of what an idle node does, and the transport loses them only with a connection
	defaultReplace   = time.Minute            // longer than the restart of a host's program, so that a restart does not change the voters

	snapshotEvery = 4096 // entries: a snapshot of a usual table has a few kilobytes, and the entries since the last one are in memory

	membersMax = 64 // the limit of runtime/raft
)

// check sets the defaults and checks the configuration.
func (c *Config) check() error {
	c.Group = cmp.Or(c.Group, defaultGroup)
	c.ElectionTimeout = cmp.Or(c.ElectionTimeout, defaultElection)
	c.Heartbeat = cmp.Or(c.Heartbeat, defaultHeartbeat)
	c.ReplaceAfter = cmp.Or(c.ReplaceAfter, defaultReplace)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Gone == nil {
		c.Gone = func(string) bool { return false }
	}
	switch {
	case c.Topology == "" || c.Node == "" || c.Plan == "":
		return errors.New("table/raft: Config.Topology, Node and Plan must be set")
	case len(c.First) == 0 || len(c.First) >= membersMax:
		return fmt.Errorf("table/raft: a cluster must have 1 to %d first nodes, got %d: name fewer, or use another engine of the address table, such as etcd", membersMax-1, len(c.First))
	case c.Transport == nil:
		return errors.New("table/raft: Config.Transport must be set")
	case c.ReplaceAfter < 0:
		return fmt.Errorf("table/raft: Config.ReplaceAfter must not be below 0, got %v", c.ReplaceAfter)
	}
	return nil
}

// peers returns the configured peers of the node: the first nodes, and the node itself.
func (c *Config) peers() map[string]string {
	peers := maps.Clone(c.First)
	peers[c.Node] = cmp.Or(peers[c.Node], c.Address)
	return peers
}

// others returns the names of the first nodes without this one.
func (c *Config) others() []string {
	names := slices.Sorted(maps.Keys(c.First))
	return slices.DeleteFunc(names, func(name string) bool { return name == c.Node })
}

// link is the shared transport. The group may add peers to it, but does not remove them,
// because other parts of the node may need them.
type link struct {
	transport.Transport
	replica *table.Replica
}

func (link) RemovePeer(string) {}

// SetPeer sets the address of a member. A node may have moved since the group has got its address from
// the configuration.
func (l link) SetPeer(name, address string) {
	if e := l.replica.Node(name); e != nil && e.Boot != 0 {
		address = e.Address
	}
	if connected, ok := l.PeerAddress(name); ok { // it may not be in the table yet
		address = connected
	}
	l.Transport.SetPeer(name, address)
}
