package raft

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/transport/grpc"
)

// The timeouts are short, because many elections are measured.
const (
	shortElection  = 300 * time.Millisecond
	shortHeartbeat = 30 * time.Millisecond
)

// cluster has three nodes, which are killed one after the other.
type cluster struct {
	dir   string
	peers map[string]string
	nodes map[string]*member
}

type member struct {
	*machine
	link *grpc.Transport
}

func openCluster(dir string) (*cluster, error) {
	peers, err := loopback()
	if err != nil {
		return nil, err
	}
	g := &cluster{dir: dir, peers: peers, nodes: map[string]*member{}}
	for _, name := range names {
		if err := g.open(name); err != nil {
			return nil, errors.Join(err, g.Close())
		}
	}
	return g, nil
}

// open starts a node, for the first time or again.
func (g *cluster) open(name string) (err error) {
	n := new(member)
	if n.link, err = grpc.Listen(grpc.Config{
		Node: name, Topology: "bench", Version: "1", Address: g.peers[name], Peers: g.peers,
		Logger: slog.New(slog.DiscardHandler),
	}); err != nil {
		return err
	}
	n.machine, err = openMachine(raft.Config{
		Node: name, Peers: g.peers, Dir: g.dir, Transport: n.link,
		Heartbeat: shortHeartbeat, ElectionTimeout: shortElection, Forward: true,
	})
	if err != nil {
		return errors.Join(err, n.link.Close())
	}
	g.nodes[name] = n
	return nil
}

// kill closes the leader's transport and stops the leader.
func (g *cluster) kill() (name string, err error) {
	err = until("leader", func() bool {
		for other, n := range g.nodes {
			if n.Status().Role == "leader" {
				name = other
			}
		}
		return name != ""
	})
	if err != nil {
		return "", err
	}
	n := g.nodes[name]
	delete(g.nodes, name)
	return name, errors.Join(n.link.Close(), n.machine.Close())
}

// Propose proposes on one of the nodes that run.
func (g *cluster) Propose(ctx context.Context, _ int) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, n := range g.nodes {
		_, err := n.Propose(ctx, count{})
		return err
	}
	return errors.New("no node is running")
}

func (g *cluster) Close() error {
	var failed error
	for _, n := range g.nodes {
		failed = errors.Join(failed, n.link.Close(), n.machine.Close())
	}
	return failed
}

// Elections kills the leader again and again: it closes the leader's transport, so that
// the other nodes receive nothing from it any more, and then the leader. Each figure is
// the time until an update that was proposed on another node is applied, in election
// timeouts.
func Elections(dir string, rounds int) (timeouts []float64, err error) {
	g, err := openCluster(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	for range rounds {
		if err := g.Propose(context.Background(), 0); err != nil {
			return nil, err
		}
		began := time.Now()
		killed, err := g.kill()
		if err != nil {
			return nil, err
		}
		if err := g.Propose(context.Background(), 0); err != nil {
			return nil, err
		}
		timeouts = append(timeouts, float64(time.Since(began))/float64(shortElection))
		if err := g.open(killed); err != nil {
			return nil, err
		}
	}
	return timeouts, nil
}
