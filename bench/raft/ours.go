package raft

import (
	"context"
	"errors"
	"log/slog"
	"maps"

	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/transport"
)

const topology, group = "bench", "counter"

type machine = raft.Machine[counter, count, *count]

// ours are three machines.
type ours struct {
	machines []*machine
	leader   *machine
	command  count
}

func overGRPC(dir string, _ int) (Group, error) {
	peers, err := loopback()
	if err != nil {
		return nil, err
	}
	return openOurs(dir, peers, func(string) (transport.Transport, error) { return nil, nil })
}

func overMemory(dir string, _ int) (Group, error) {
	peers := map[string]string{}
	for _, name := range names {
		peers[name] = name
	}
	return openOurs(dir, peers, transport.NewMemory(transport.MemoryOptions{}).Join)
}

// loopback are the names with addresses where nobody listens yet.
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

func openOurs(dir string, peers map[string]string, link func(name string) (transport.Transport, error)) (Group, error) {
	g := new(ours)
	for _, name := range names {
		t, err := link(name)
		if err != nil {
			return nil, errors.Join(err, g.Close())
		}
		m, err := openMachine(raft.Config{
			Node: name, Peers: maps.Clone(peers), Dir: dir, Transport: t,
			Heartbeat: heartbeat, ElectionTimeout: election, Forward: true,
		})
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

// openMachine starts one.
func openMachine(c raft.Config) (*machine, error) { return openMachineIn(c, nil) }

// openMachineIn starts one as a processor in a topology's pool.
func openMachineIn(c raft.Config, host fsm.Host) (*machine, error) {
	c.Topology, c.Group = topology, group
	c.Logger = slog.New(slog.DiscardHandler)
	m, err := raft.New[counter, count](c, counterCodec, countCodec)
	if err != nil {
		return nil, err
	}
	return m, m.Start(context.Background(), host)
}

func (g *ours) Propose(ctx context.Context, _ int) error {
	_, err := g.leader.Propose(ctx, g.command)
	return err
}

func (g *ours) Close() error {
	var failed error
	for _, m := range g.machines {
		failed = errors.Join(failed, m.Close())
	}
	return failed
}
