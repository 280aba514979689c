package raft

import (
	"context"
	"errors"
	"io"
	stdlog "log"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	hashiraft "github.com/hashicorp/raft"
	raftwal "github.com/hashicorp/raft-wal"
)

var discard = stdlog.New(io.Discard, "", 0)

// hashiGroup has three nodes of hashicorp/raft.
type hashiGroup struct {
	bytes  int // bytes of a command
	nodes  []*hashiraft.Raft
	leader atomic.Pointer[hashiraft.Raft]
	close  []func() error
}

// hashiCounter is the state. It receives committed commands in batches.
type hashiCounter struct{ n uint64 }

var errNoSnapshots = errors.New("snapshots are not supported")

func (c *hashiCounter) Apply(*hashiraft.Log) any { c.n++; return nil }
func (c *hashiCounter) ApplyBatch(list []*hashiraft.Log) []any {
	c.n += uint64(len(list))
	return make([]any, len(list))
}
func (*hashiCounter) Snapshot() (hashiraft.FSMSnapshot, error) { return nil, errNoSnapshots }
func (*hashiCounter) Restore(io.ReadCloser) error              { return errNoSnapshots }

func hashicorp(dir string, l Load) (Group, error) {
	g := &hashiGroup{bytes: l.Bytes}
	if err := g.open(dir); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	if err := until("leader", g.findLeader); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

func (g *hashiGroup) open(dir string) error {
	var links []*hashiraft.NetworkTransport
	var servers []hashiraft.Server
	for _, name := range names {
		link, err := hashiraft.NewTCPTransportWithLogger("127.0.0.1:0", nil, len(names), patience, hclog.NewNullLogger())
		if err != nil {
			return err
		}
		g.close = append(g.close, link.Close)
		links = append(links, link)
		servers = append(servers, hashiraft.Server{ID: hashiraft.ServerID(name), Address: link.LocalAddr()})
	}
	for i, name := range names {
		dir := filepath.Join(dir, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		log, err := raftwal.Open(dir)
		if err != nil {
			return err
		}
		g.close = append(g.close, log.Close)
		c := hashiraft.DefaultConfig()
		c.LocalID = servers[i].ID
		c.Logger = hclog.NewNullLogger()
		c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout = election, election, election
		c.MaxAppendEntries, c.BatchApplyCh = 1024, true // the fastest setting with many proposers
		c.SnapshotThreshold, c.SnapshotInterval = 1<<40, time.Hour
		snapshots := hashiraft.NewInmemSnapshotStore()
		if err := hashiraft.BootstrapCluster(c, log, log, snapshots, links[i], hashiraft.Configuration{Servers: servers}); err != nil {
			return err
		}
		node, err := hashiraft.NewRaft(c, new(hashiCounter), log, log, snapshots, links[i])
		if err != nil {
			return err
		}
		g.nodes = append(g.nodes, node)
	}
	return nil
}

// Propose tries another leader if there is one: with few processors and many callers a
// lease may expire.
func (g *hashiGroup) Propose(ctx context.Context, _ int) error {
	for {
		err := g.leader.Load().Apply(make([]byte, g.bytes), patience).Error()
		switch {
		case err == nil || ctx.Err() != nil:
			return err
		case !errors.Is(err, hashiraft.ErrNotLeader) && !errors.Is(err, hashiraft.ErrLeadershipLost):
			return err
		}
		if err := until("leader", g.findLeader); err != nil {
			return err
		}
	}
}

func (g *hashiGroup) findLeader() bool {
	for _, n := range g.nodes {
		if n.State() == hashiraft.Leader {
			g.leader.Store(n)
			return true
		}
	}
	return false
}

func (g *hashiGroup) Close() error {
	var failed error
	for _, n := range g.nodes {
		failed = errors.Join(failed, n.Shutdown().Error())
	}
	for _, close := range g.close {
		failed = errors.Join(failed, close())
	}
	return failed
}
