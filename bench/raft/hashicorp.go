package raft

import (
	"context"
	"errors"
	"io"
	stdlog "log"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"
	hashiraft "github.com/hashicorp/raft"
	raftwal "github.com/hashicorp/raft-wal"
)

var discard = stdlog.New(io.Discard, "", 0)

// hashiGroup is hashicorp/raft three times.
type hashiGroup struct {
	nodes  []*hashiraft.Raft
	leader *hashiraft.Raft
	close  []func() error
}

// hashiCounter is the state. All that is committed comes at once.
type hashiCounter struct{ n uint64 }

var errNoSnapshots = errors.New("there are no snapshots")

func (c *hashiCounter) Apply(*hashiraft.Log) any { c.n++; return nil }
func (c *hashiCounter) ApplyBatch(list []*hashiraft.Log) []any {
	c.n += uint64(len(list))
	return make([]any, len(list))
}
func (*hashiCounter) Snapshot() (hashiraft.FSMSnapshot, error) { return nil, errNoSnapshots }
func (*hashiCounter) Restore(io.ReadCloser) error              { return errNoSnapshots }

func hashicorp(dir string, _ int) (Group, error) {
	g := new(hashiGroup)
	if err := g.open(dir); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, until("leader", func() bool {
		for _, n := range g.nodes {
			if n.State() == hashiraft.Leader {
				g.leader = n
			}
		}
		return g.leader != nil
	})
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
		c.HeartbeatTimeout, c.ElectionTimeout = election, election
		c.MaxAppendEntries, c.BatchApplyCh = 1024, true // what makes it fastest with many proposers
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

func (g *hashiGroup) Propose(context.Context, int) error {
	return g.leader.Apply(make([]byte, commandBytes), patience).Error()
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
