package raft

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"time"

	"github.com/topogen/topogen/bench/measure"
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/transport"
	"github.com/topogen/topogen/runtime/transport/grpc"
)

// Several returns subjects with one group and with many: each caller proposes to one of
// the groups.
func Several(numbers ...int) (list []Subject) {
	for _, n := range numbers {
		name := fmt.Sprintf("%d groups", n)
		if n == 1 {
			name = "1 group"
		}
		list = append(list, Subject{name, func(dir string, l Load) (Group, error) { return openSeveral(dir, n) }})
	}
	return list
}

// several holds groups on the same three nodes, with one listener per node.
type several struct {
	machines [][]*machine // by node and group
	links    []transport.Transport
	leaders  []*machine // by group
}

func openSeveral(dir string, n int) (_ *several, err error) {
	peers, err := loopback()
	if err != nil {
		return nil, err
	}
	g := new(several)
	defer func() {
		if err != nil {
			err = errors.Join(err, g.Close())
		}
	}()
	for _, name := range names {
		t, err := grpc.Listen(grpc.Config{
			Node: name, Topology: topology, Version: "1", Address: peers[name], Peers: peers, Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			return g, err
		}
		g.links = append(g.links, t)
		g.machines = append(g.machines, nil)
		for i := range n {
			m, err := openMachine(raft.Config{
				Node: name, Peers: peers, Dir: dir, Transport: t, Instance: i, Instances: n,
				Heartbeat: heartbeat, ElectionTimeout: election, Forward: true,
			})
			if err != nil {
				return g, err
			}
			last := len(g.machines) - 1
			g.machines[last] = append(g.machines[last], m)
		}
	}
	return g, until("leader of each group, spread over the nodes", g.spread)
}

// spread reports whether each group has its leader on its node.
func (g *several) spread() bool {
	g.leaders = g.leaders[:0]
	for i := range g.machines[0] {
		for node := range g.machines {
			m := g.machines[node][i]
			name, _ := m.Leader()
			here := name == names[i%len(names)] || len(g.machines[0]) == 1
			if name == names[node] && here {
				g.leaders = append(g.leaders, m)
			}
		}
	}
	return len(g.leaders) == len(g.machines[0])
}

func (g *several) Propose(ctx context.Context, caller int) error {
	_, err := g.leaders[caller%len(g.leaders)].Propose(ctx, count{})
	return err
}

// Counts adds up the figures of all nodes of all groups.
func (g *several) Counts() (c Counts) {
	for node, ms := range g.machines {
		c.Dropped += g.links[node].Stats().Dropped
		for _, m := range ms {
			c.Term = max(c.Term, m.Status().Term)
		}
	}
	return c
}

func (g *several) Close() (failed error) {
	for _, ms := range g.machines {
		for _, m := range ms {
			failed = errors.Join(failed, m.Close())
		}
	}
	for _, l := range g.links {
		failed = errors.Join(failed, l.Close())
	}
	return failed
}

// IdleResult is the cost of idle groups, on three nodes together.
type IdleResult struct {
	Groups     int
	CPU        float64 // share of a processor
	Heap       float64 // bytes
	Goroutines int
}

// PerGroup is the processor time per group and second, in milliseconds.
func (r IdleResult) PerGroup() float64 { return r.CPU * 1e3 / float64(max(r.Groups, 1)) }

// Idle measures idle groups for a time.
func Idle(n int, e Effort) (r IdleResult, err error) {
	dir, err := os.MkdirTemp(e.Dir, "raft")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	heap, goroutines := measure.Heap(), runtime.NumGoroutine()
	g, err := openSeveral(dir, n)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	time.Sleep(election)
	r = IdleResult{Groups: n, Heap: float64(measure.Heap()) - float64(heap), Goroutines: runtime.NumGoroutine() - goroutines}
	cpu, began := measure.CPU(), time.Now()
	time.Sleep(e.Run)
	r.CPU = float64(measure.CPU()-cpu) / float64(time.Since(began))
	return r, nil
}
