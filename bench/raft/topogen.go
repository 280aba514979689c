package raft

import (
	"context"
	"errors"
	"log/slog"
	"maps"

	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/transport"
	"github.com/topogen/topogen/runtime/transport/grpc"
)

const topology, group = "bench", "counter"

type machine = raft.Machine[counter, count, struct{}]

// ours has three nodes with topogen's state machine.
type ours[U any] struct {
	machines []*raft.Machine[counter, U, struct{}]
	links    []transport.Transport
	leader   *raft.Machine[counter, U, struct{}]
	update   U
}

func overGRPC(dir string, l Load) (Group, error) {
	peers, err := loopback()
	if err != nil {
		return nil, err
	}
	return openLoad(dir, l, peers, func(name string) (transport.Transport, error) {
		return grpc.Listen(grpc.Config{
			Node: name, Topology: topology, Version: "1", Address: peers[name], Peers: peers,
			Logger: slog.New(slog.DiscardHandler),
		})
	})
}

func overMemory(dir string, l Load) (Group, error) {
	peers := map[string]string{}
	for _, name := range names {
		peers[name] = name
	}
	return openLoad(dir, l, peers, transport.NewMemory(transport.MemoryOptions{}).Join)
}

// loopback returns the names of the nodes with free addresses.
func loopback() (map[string]string, error) {
	addresses, err := freeAddresses(len(names))
	if err != nil {
		return nil, err
	}
	peers := map[string]string{}
	for i, name := range names {
		peers[name] = addresses[i]
	}
	return peers, nil
}

type linkTo = func(name string) (transport.Transport, error)

// openLoad opens nodes whose updates have the size of the load.
func openLoad(dir string, l Load, peers map[string]string, link linkTo) (Group, error) {
	if l.Bytes == CommandBytes {
		return openOurs(dir, peers, link, countDefinition, count{})
	}
	return openOurs(dir, peers, link, blobDefinition, blob{make([]byte, l.Bytes)})
}

func openOurs[U any](dir string, peers map[string]string, link linkTo, d fsm.Definition[counter, U, struct{}], update U) (Group, error) {
	g := &ours[U]{update: update}
	for _, name := range names {
		t, err := link(name)
		if err != nil {
			return nil, errors.Join(err, g.Close())
		}
		g.links = append(g.links, t)
		m, err := openMachineIn(raft.Config{
			Node: name, Peers: maps.Clone(peers), Dir: dir, Transport: t,
			Heartbeat: heartbeat, ElectionTimeout: election, Forward: true,
		}, d, nil)
		if err != nil {
			return nil, errors.Join(err, g.Close())
		}
		g.machines = append(g.machines, m)
	}
	err := until("leader", func() bool {
		for _, m := range g.machines {
			if m.Status().Role == "leader" {
				g.leader = m
			}
		}
		return g.leader != nil
	})
	if err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// openMachine opens a state machine.
func openMachine(c raft.Config) (*machine, error) {
	return openMachineIn(c, countDefinition, nil)
}

// openMachineIn opens a state machine as a processor in a topology's pool.
func openMachineIn[U any](c raft.Config, d fsm.Definition[counter, U, struct{}], host fsm.Host) (*raft.Machine[counter, U, struct{}], error) {
	c.Topology, c.Group = topology, group
	c.Logger = slog.New(slog.DiscardHandler)
	m, err := raft.New(c, d)
	if err != nil {
		return nil, err
	}
	return m, m.Start(context.Background(), host)
}

func (g *ours[U]) Propose(ctx context.Context, _ int) error {
	_, err := g.leader.Propose(ctx, g.update)
	return err
}

// Counts adds up the figures of all three.
func (g *ours[U]) Counts() (c Counts) {
	for i, m := range g.machines {
		c.Dropped += g.links[i].Stats().Dropped
		c.Term = max(c.Term, m.Status().Term)
	}
	return c
}

func (g *ours[U]) Close() error {
	var failed error
	for _, m := range g.machines {
		failed = errors.Join(failed, m.Close())
	}
	for _, l := range g.links {
		failed = errors.Join(failed, l.Close())
	}
	return failed
}
