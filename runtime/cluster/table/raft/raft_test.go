package raft_test

import (
	"log/slog"
	"os"
	"testing"
	"time"

	etcdwal "go.etcd.io/etcd/server/v3/storage/wal"

	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/internal/test/tabletest"
	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/cluster/table/raft"
	"github.com/topogen/topogen/runtime/transport"
)

// TestMain makes the segments of logs small: a test that opens many logs would spend most of its
// time with the space that the engine allocates for each, and with zeros that Open reads. Only a
// long run has the segments of 16 MiB of the product.
func TestMain(m *testing.M) {
	etcdwal.SegmentSizeBytes = speed.ForAll(64<<10, 64<<10, etcdwal.SegmentSizeBytes)
	os.Exit(m.Run())
}

// first are the first nodes of the tests.
var first = map[string]string{"n1": "n1:7400", "n2": "n2:7400", "n3": "n3:7400"}

// cluster is a cluster in one process, with a folder for each node.
type cluster struct {
	network *transport.Memory
	dir     string
	change  func(*raft.Config) // changes the configuration of each node; nil: no change
}

func newCluster(t *testing.T) *cluster {
	return &cluster{network: transport.NewMemory(transport.MemoryOptions{}), dir: memdir.Quick(t)}
}

// config returns the configuration of a node.
func (c *cluster) config(name string) raft.Config {
	config := raft.Config{
		Topology: "test", Node: name, Address: name + ":7400", First: first, Plan: "plan-1", Dir: c.dir,
		ElectionTimeout: 200 * time.Millisecond, Heartbeat: 20 * time.Millisecond,
		Logger: slog.New(slog.DiscardHandler),
	}
	if c.change != nil {
		c.change(&config)
	}
	return config
}

// open opens the table on a node. Close also closes the node's transport.
func (c *cluster) open(t *testing.T, config raft.Config) *node {
	t.Helper()
	link, err := c.network.Join(config.Node)
	if err != nil {
		t.Fatal(err)
	}
	config.Transport = link
	o, err := raft.Open(config)
	if err != nil {
		t.Fatal(err)
	}
	return &node{o, link}
}

func (c *cluster) Open(t *testing.T, name string) table.Table { return c.open(t, c.config(name)) }

// Cut cuts a first node off from the others.
func (c *cluster) Cut(name string, cut bool) {
	for other := range first {
		if other != name {
			c.network.Cut(name, other, cut)
			c.network.Cut(other, name, cut)
		}
	}
}

// node is a table that closes its transport.
type node struct {
	*raft.Table
	link transport.Transport
}

func (n *node) Close() error {
	err := n.Table.Close()
	if e := n.link.Close(); err == nil {
		err = e
	}
	return err
}

func TestConformance(t *testing.T) {
	tabletest.Run(t, tabletest.Engine{New: func(t *testing.T) tabletest.Cluster { return newCluster(t) }})
}
