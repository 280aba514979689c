package table

import (
	"time"

	"github.com/topogen/topogen/runtime/transport"
)

// Limits of a table. Everything that comes from a disk or from another node is checked
// against them before it is kept.
const (
	NodesMax      = 4096                      // a node number has 16 bits in a container's cell, and each list of nodes is copied at every change of a node
	ProcessorsMax = 4096                      // processors of a topology
	ContainersMax = 1 << 20                   // containers of all processors: 8 MiB of cells
	LeasesMax     = 4096                      // a lease guards a role of the cluster, such as the rebalancer
	NameBytesMax  = transport.AddressBytesMax // of the name of a node, processor, role or lease, and of an address
	RolesMax      = 64                        // of a node
	RolesBytesMax = 4096                      // of the names of a node's roles: the largest table must fit into SnapshotBytes
	PlanBytesMax  = 128                       // a hash as text

	DescriptionBytesMax = 256 << 10 // of a plan: thousands of processors and edges; it travels in a transaction with the first placement, and in an urgent message

	ChangesMax    = 1 << 16 // guards of a transaction, and changes of a transaction
	CommandBytes  = 1 << 20 // an encoded transaction: etcd accepts requests of 1.5 MiB
	SnapshotBytes = 64 << 20

	epochMax = 1<<48 - 1 // an epoch has 48 bits in a cell: one change in a microsecond fills them in nine years
)

// Limits of the events that a replica keeps for its watchers. A watcher that is further
// behind gets a snapshot.
const (
	historyEvents = 4096
	historyWeight = 1 << 14 // nodes, moves and leases in these events: about a megabyte and a half
)

// Limits of the time of leases.
const (
	LeaseMin    = 100 * time.Millisecond // a shorter lease would expire while a disk syncs its renewal
	LeaseMax    = 24 * time.Hour
	clockMargin = time.Second // runtime/raft tolerates clocks that differ by 500 ms from the median, so two of them differ by at most this
)
